"""Renders escaped HTML and sets security headers."""

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tipcflow_pages.views.sparkline import strip
from tipcflow_pages.views.words import FILTERS

# Only same-origin scripts, styles, images and data; no inline scripts, so that log text cannot become one.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'self'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def wants_html(request: Request) -> bool:
    """Whether the client is a browser; other clients get JSON."""
    return "text/html" in request.headers.get("accept", "") and not path_of(request).startswith("/api/")


def path_of(request: Request) -> str:
    """Return the request path relative to the mount point of the app."""
    return str(request.scope["path"]).removeprefix(root_of(request))


def root_of(request: Request) -> str:
    """Return the mount point of the app as seen by a browser."""
    return str(request.scope.get("root_path", ""))


def html(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a template, in which `root` is the mount point of the app and `airflow` that of Airflow."""
    root = root_of(request)
    values |= {"root": root, "airflow": root.rpartition("/")[0]}
    values |= {"is_generated": getattr(request.state, "is_generated", False)}
    text = _templates().get_template(template).render(**values)
    # Logs may contain half of a surrogate pair, which cannot be encoded.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=status, headers=HEADERS)


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS, strip=strip)
    return made
