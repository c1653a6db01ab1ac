"""Styles and scripts, behind the login; plotly.js comes from the installed package."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from tipcflow_pages.web.render import HEADERS

router = APIRouter(prefix="/assets")
_HERE = Path(__file__).parents[1] / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_OWN = frozenset({"app.css", "app.js", "chart.js", "chart.css", "icon.svg", "overview.css"})


@router.get("/plotly.min.js")
def plotly(request: Request) -> Response:
    """Serve plotly.js; 4.8 MB, so browsers cache it and only revalidate."""
    path = _plotly()
    if path is None:
        raise HTTPException(404, "the package plotly is not installed")
    return _file(request, path, "text/javascript")


@router.get("/{name}")
def own(name: str, request: Request) -> Response:
    """Serve a file of this package, by name."""
    if name not in _OWN:
        raise HTTPException(404, f"there is no file {name!r} here")
    return _file(request, _HERE / name, _TYPES[Path(name).suffix])


def _file(request: Request, path: Path, media_type: str) -> Response:
    tag = _tag(path, path.stat().st_mtime_ns)
    headers = {**HEADERS, "Cache-Control": "private, max-age=300", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return FileResponse(path, media_type=media_type, headers=headers)


@cache
def _tag(path: Path, _changed: int) -> str:
    return f'"{hashlib.sha256(path.read_bytes()).hexdigest()[:20]}"'


@cache
def _plotly() -> Path | None:
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return path if path.is_file() else None
