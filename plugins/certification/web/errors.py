"""What goes wrong, as a page for people and as JSON for machines; never a traceback."""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from certification.web.access import login_url
from certification.web.render import html, path_of, root_of, wants_html
from tipcflow.domain import TipcflowError

_log = logging.getLogger(__name__)
_TITLES = {
    401: "Log in first",
    403: "Not allowed",
    404: "Not found",
    422: "That cannot be asked",
    503: "The metrics database cannot be shown",
}


def handlers() -> dict[Any, Any]:
    """Exception class -> handler, as FastAPI takes them."""
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
    return _say(request, error.status_code, str(error.detail), headers=error.headers)


def _wrong_question(request: Request, error: RequestValidationError) -> Response:
    said = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors())
    return _say(request, 422, said)


def _ours(request: Request, error: TipcflowError) -> Response:
    return _say(request, 503, error.message, hint=error.hint)


def _unreadable(request: Request, error: ValidationError) -> Response:
    _log.warning("what stands in the metrics database cannot be read: %s", error)
    return _say(request, 503, "what stands there was written by another version of tipcflow")


def _unexpected(request: Request, error: Exception) -> Response:
    # The server logs the traceback itself; here is only what happened.
    return _say(request, 500, f"{type(error).__name__} while the page was made; the api-server's log says more")


def _to_login(request: Request) -> Response:
    """A browser goes on to the login and comes back; the answer still is a 401."""
    query = f"?{request.url.query}" if request.url.query else ""
    url = login_url(f"{root_of(request)}{quote(path_of(request))}{query}")
    return html(request, "login.html", status=401, title=_TITLES[401], login=url)


def _say(
    request: Request, status: int, message: str, *, hint: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    if not wants_html(request):
        told = {"detail": message, **({"hint": hint} if hint else {})}
        return JSONResponse(told, status_code=status, headers=headers)
    title = _TITLES.get(status, "That did not work")
    return html(request, "trouble.html", status=status, title=title, message=message, hint=hint)
