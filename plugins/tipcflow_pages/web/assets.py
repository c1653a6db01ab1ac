"""Styles and scripts, behind the login."""

import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from tipcflow_pages.web.render import HEADERS

router = APIRouter(prefix="/assets")
_HERE = Path(__file__).parents[1] / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OWN = frozenset({"app.css", "app.js", "chart.js", "icon.svg", "overview.css", "plot.js", "series.js"})
# Unchanged files of the package uPlot (static/uplot/README.md).
_LIBRARY = frozenset({"uPlot.iife.min.js", "uPlot.min.css"})


@router.get("/{name}")
def own(name: str, request: Request) -> Response:
    """Serve a file of this package, by name."""
    if name not in _OWN | _LIBRARY:
        raise HTTPException(404, f"no such file: {name}")
    path = _HERE / "uplot" / name if name in _LIBRARY else _HERE / name
    return _file(request, path, _TYPES[path.suffix])


def _file(request: Request, path: Path, media_type: str) -> Response:
    tag = _tag(path, path.stat().st_mtime_ns)
    headers = {**HEADERS, "Cache-Control": "private, max-age=300", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return FileResponse(path, media_type=media_type, headers=headers)


@cache
def _tag(path: Path, _changed: int) -> str:
    return f'"{hashlib.sha256(path.read_bytes()).hexdigest()[:20]}"'
