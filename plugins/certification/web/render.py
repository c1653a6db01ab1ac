"""HTML with everything escaped, and the headers that keep it harmless."""

from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from certification.views.sparkline import strip
from certification.views.words import FILTERS

# Scripts, styles, pictures and data from here alone; no inline script, so no text from a log can become one.
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
    """Whether a person with a browser asks; machines get JSON."""
    return "text/html" in request.headers.get("accept", "") and not path_of(request).startswith("/api/")


def path_of(request: Request) -> str:
    """The path below the place where the app is mounted."""
    return str(request.scope["path"]).removeprefix(root_of(request))


def root_of(request: Request) -> str:
    """Where the app is mounted, as a browser must write it."""
    return str(request.scope.get("root_path", ""))


def html(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from a template. In it `root` is where the app is mounted, `airflow` where Airflow is."""
    root = root_of(request)
    values |= {"root": root, "airflow": root.rpartition("/")[0]}
    text = _templates().get_template(template).render(**values)
    # a log may hold half of a surrogate pair, which is no text that can be sent
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
