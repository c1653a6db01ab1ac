"""Errors as an HTML page for browsers and as JSON for other clients; never a traceback."""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from tipcflow.config.loader import invalid_value
from tipcflow.domain import TipcflowError
from tipcflow_pages.web.access import login_url
from tipcflow_pages.web.render import html, path_of, root_of, wants_html

_log = logging.getLogger(__name__)
_TITLES = {
    401: "Login required",
    403: "Not allowed",
    404: "Not found",
    422: "Invalid request",
    503: "Metrics database unavailable",
}


def handlers() -> dict[Any, Any]:
    """Return the handlers by exception class, as FastAPI expects them."""
    return {
        StarletteHTTPException: _http,
        RequestValidationError: _wrong_question,
        TipcflowError: _ours,
        ValidationError: _unreadable,
        Exception: _unexpected,
    }


def _http(request: Request, error: HTTPException) -> Response:
    if error.status_code == 401 and wants_html(request):
        return _to_login(request)
    return _error_page(request, error.status_code, str(error.detail), headers=error.headers)


def _wrong_question(request: Request, error: RequestValidationError) -> Response:
    errors = (invalid_value(detail, key=".".join(map(str, detail["loc"][1:]))) for detail in error.errors())
    return _error_page(request, 422, "\n".join(problem.message for problem in errors))


def _ours(request: Request, error: TipcflowError) -> Response:
    return _error_page(request, 503, error.message, hint=error.hint)


def _unreadable(request: Request, error: ValidationError) -> Response:
    _log.warning("cannot read a record of the metrics database: %s", error)
    return _error_page(request, 503, "incompatible record, written by another version of tipcflow")


def _unexpected(request: Request, error: Exception) -> Response:
    # The server logs the traceback; the response only names the exception.
    return _error_page(request, 500, f"{type(error).__name__} while rendering the page; see the api-server's log")


def _to_login(request: Request) -> Response:
    """Send a browser to the login, which returns to this page; the status is still 401."""
    query = f"?{request.url.query}" if request.url.query else ""
    url = login_url(f"{root_of(request)}{quote(path_of(request))}{query}")
    return html(request, "login.html", status=401, title=_TITLES[401], login=url)


def _error_page(
    request: Request, status: int, message: str, *, hint: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    if not wants_html(request):
        body = {"detail": message, **({"hint": hint} if hint else {})}
        return JSONResponse(body, status_code=status, headers=headers)
    title = _TITLES.get(status, "Error")
    return html(request, "trouble.html", status=status, title=title, message=message, hint=hint)
