"""FastAPI app that Airflow mounts; every route requires a login."""

from functools import cache

from fastapi import Depends, FastAPI, HTTPException

from tipcflow_pages import api, chain, compare, from_airflow, metrics, pages, run_files, series, start_ab
from tipcflow_pages.actions import decide, stop
from tipcflow_pages.overviews import alerts, audit, builds, chains, decisions, fleet, pulls, scaling, versions
from tipcflow_pages.web import assets
from tipcflow_pages.web.access import may_read
from tipcflow_pages.web.errors import handlers
from tipcflow_pages.web.texts import refuse_nul

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


@cache
def process_app() -> FastAPI:
    """Return the app of this process."""
    return create_app()


def create_app() -> FastAPI:
    """Create the app, without the OpenAPI routes, which would be public."""
    app = FastAPI(
        title="Certification",
        dependencies=[Depends(may_read), Depends(refuse_nul)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers=handlers(),
    )
    for section in (
        pages,
        chain,
        compare,
        start_ab,
        stop,
        decide,
        series,
        chains,
        builds,
        alerts,
        fleet,
        decisions,
        audit,
        versions,
        pulls,
        scaling,
        run_files,
        api,
        from_airflow,
        assets,
    ):
        app.include_router(section.router)
    app.add_route("/metrics", metrics.metrics, methods=["GET"])  # has a token instead of a login
    app.add_api_route("/{path:path}", _nothing_here, methods=_METHODS, include_in_schema=False)
    return app


def _nothing_here(path: str) -> None:
    """Handle unknown paths behind the login, too, so that they reveal nothing without it."""
    raise HTTPException(404, f"page {path!r} does not exist")
