"""The pages: chains, runs, one run."""

import time
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from certification.data.data import SettingsDep, StoreDep
from certification.data.run_data import read_story
from certification.views.neighbours import look_around
from certification.views.run_view import RunView
from certification.web.render import html
from tipcflow.store.queries.pages import Listed, Wanted
from tipcflow.store.schema import RUN_WORDS

router = APIRouter()
PER_PAGE = 50
_WORDS = ("running", *(word.value for word in sorted(RUN_WORDS, key=lambda word: -word.severity)))
Page = Annotated[int, Query(ge=1, le=100_000)]


@router.get("/")
def chains(
    request: Request, store: StoreDep, suite: str = "", status: str = "", text: str = "", page: Page = 1
) -> Response:
    """Return all chains with the latest run and the statuses of earlier runs."""
    wanted = Wanted(suite=suite, status=_known(status), text=text)
    listed = store.chains_page(wanted, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    return _list(request, store, "chains.html", listed=listed, wanted=wanted, page=page, view="")


@router.get("/runs")
def runs(
    request: Request,
    store: StoreDep,
    suite: str = "",
    status: str = "",
    text: str = "",
    chain: str = "",
    page: Page = 1,
) -> Response:
    """Return the runs, newest first."""
    wanted = Wanted(suite=suite, status=_known(status), text=text, chain=chain)
    listed = store.runs_page(wanted, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    return _list(request, store, "runs.html", listed=listed, wanted=wanted, page=page, view="runs")


@router.get("/runs/{run_id}")
def run(request: Request, run_id: str, store: StoreDep, chosen: SettingsDep) -> Response:
    """Return the page of a run."""
    story = read_story(store, run_id)
    if story is None:
        raise HTTPException(404, f"no such run: {run_id}")
    return html(request, "run.html", title=run_id, view=RunView(story, look_around(story, chosen.home)))


def _known(status: str) -> str:
    if status and status not in _WORDS:
        raise HTTPException(422, f"status: found {status!r}, expected one of {', '.join(_WORDS)}")
    return status


def _list(
    request: Request, store: StoreDep, template: str, *, listed: Listed, wanted: Wanted, page: int, view: str
) -> Response:
    pages = max(1, -(-listed.total // PER_PAGE))
    filters = {name: value for name, value in vars(wanted).items() if value}

    def link(**changes: object) -> str:
        """Return the URL of the list with changed filters; resets to page 1 unless the page changes."""
        chosen = {key: value for key, value in (filters | changes).items() if value}
        return f"{view}?{urlencode(chosen)}" if chosen else view or "?"

    return html(
        request,
        template,
        title="Certification",
        listed=listed,
        wanted=wanted,
        page=page,
        pages=pages,
        link=link,
        words=_WORDS,
        suites=store.suites(),
        now=time.time(),
        per_page=PER_PAGE,
    )
