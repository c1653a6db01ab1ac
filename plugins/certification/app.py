"""The FastAPI app that Airflow mounts: every route of it asks for the login."""

from functools import cache

from fastapi import Depends, FastAPI, HTTPException

from certification import api, pages, run_files
from certification.web import assets
from certification.web.access import may_read
from certification.web.errors import handlers

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


@cache
def the_app() -> FastAPI:
    """The app of this process."""
    return create_app()


def create_app() -> FastAPI:
    """A new app. It publishes no description of itself: those routes would be open to everybody."""
    app = FastAPI(
        title="Certification",
        dependencies=[Depends(may_read)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers=handlers(),
    )
    for room in (pages, run_files, api, assets):
        app.include_router(room.router)
    app.add_api_route("/{path:path}", _nothing_here, methods=_METHODS, include_in_schema=False)
    return app


def _nothing_here(path: str) -> None:
    """What no other route knows is behind the login as well: who may not look learns nothing."""
    raise HTTPException(404, f"there is no page {path!r} here")
