"""The pages: chains, runs, one run."""

import time
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from tipcflow.execute.comparison.predecessors import predecessors_of
from tipcflow.store.queries.pages import Listed, RunFilter
from tipcflow.store.schema import RUN_WORDS
from tipcflow_pages.data.data import SettingsDep, StoreDep, run_data
from tipcflow_pages.views.neighbours import collect_context
from tipcflow_pages.views.run_view import RunView
from tipcflow_pages.web.render import HEADERS, html, root_of

router = APIRouter()
# A page has less than 100 tab stops: two per chain, one per run.
CHAINS, RUNS = 30, 50
_WORDS = ("running", *(word.value for word in sorted(RUN_WORDS, key=lambda word: -word.severity)))
Order = Literal["worst", "newest"]
Page = Annotated[int, Query(ge=1, le=100_000)]


@router.get("/")
def chains(
    request: Request,
    store: StoreDep,
    suite: str = "",
    status: str = "",
    text: str = "",
    order: Order = "worst",
    page: Page = 1,
) -> Response:
    """Return all chains with the latest run and the statuses of earlier runs."""
    wanted = RunFilter(suite=suite, status=_known(status), text=text)
    is_worst = order == "worst"
    listed = store.pages.chains(wanted, limit=CHAINS, offset=(page - 1) * CHAINS, worst_first=is_worst)
    return _list(
        request,
        store,
        "chains.html",
        listed=listed,
        wanted=wanted,
        page=page,
        view="",
        order=order,
        per_page=CHAINS,
    )


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
    wanted = RunFilter(suite=suite, status=_known(status), text=text, chain=chain)
    listed = store.pages.runs(wanted, limit=RUNS, offset=(page - 1) * RUNS)
    return _list(request, store, "runs.html", listed=listed, wanted=wanted, page=page, view="runs", per_page=RUNS)


@router.get("/runs/{run_id}")
def run(request: Request, run_id: str, store: StoreDep, chosen: SettingsDep) -> Response:
    """Return the page of a run."""
    data = run_data(store, run_id)
    view = RunView(data, collect_context(store, data, chosen.home), predecessors_of(store, data.run))
    return html(request, "run.html", title=run_id, view=view, alerts=store.tracked_alerts.of_run(run_id))


def _known(status: str) -> str:
    if status and status not in _WORDS:
        raise HTTPException(422, f"status: found {status!r}, expected one of {', '.join(_WORDS)}")
    return status


def _waiting(store: StoreDep, listed: Listed) -> frozenset[str]:
    """Return the listed runs that wait for slots."""
    shown = [getattr(row, "latest", row) for row in listed.rows]
    if all(run.status is not None for run in shown):
        return frozenset()
    return frozenset(place.request.run for place in store.queue.places())


def _list(
    request: Request,
    store: StoreDep,
    template: str,
    *,
    listed: Listed,
    wanted: RunFilter,
    page: int,
    view: str,
    per_page: int,
    order: Order = "newest",
) -> Response:
    pages = max(1, -(-listed.total // per_page))
    filters = {name: value for name, value in vars(wanted).items() if value}
    if order == "newest" and not view:
        filters["order"] = order

    def link(**changes: object) -> str:
        """Return the URL of the list with changed filters; resets to page 1 unless the page changes."""
        chosen = {key: value for key, value in (filters | changes).items() if value}
        return f"{view}?{urlencode(chosen)}" if chosen else view or "?"

    if page > pages:
        return RedirectResponse(f"{root_of(request)}/{link(page=pages)}", status_code=303, headers=HEADERS)
    return html(
        request,
        template,
        title="Certification",
        listed=listed,
        wanted=wanted,
        page=page,
        pages=pages,
        order=order,
        link=link,
        words=_WORDS,
        suites=store.runs.suites(),
        waiting=_waiting(store, listed),
        now=time.time(),
    )
