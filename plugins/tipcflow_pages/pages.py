"""The pages: chains, runs, one run."""

import time
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from tipcflow.domain.quarantine.signature import refusal
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.run.drains import DoubtfulDocument
from tipcflow.execute.comparison.predecessors import predecessors_of
from tipcflow.store.queries.pages import ChainOrder, Listed, RunFilter
from tipcflow.store.schema import RUN_WORDS
from tipcflow_operators.airflow.internals import GetUserDep
from tipcflow_pages.actions.decide import decisions_of
from tipcflow_pages.actions.stop import can_stop
from tipcflow_pages.data.dag_run import find_dag_run, state_and_owner
from tipcflow_pages.data.data import SettingsDep, StoreDep, run_data
from tipcflow_pages.views.neighbours import collect_context
from tipcflow_pages.views.run_view import RunView
from tipcflow_pages.web.days import day_limit
from tipcflow_pages.web.render import HEADERS, html, root_of

router = APIRouter()
# A page has less than 100 tab stops: two per chain, one per run.
CHAINS, RUNS = 30, 50
_WORDS = ("running", *(word.value for word in sorted(RUN_WORDS, key=lambda word: -word.severity)))
# Orders of the list of chains, with the names of the directions of its pages.
_ORDERS: dict[ChainOrder, tuple[str, str]] = {
    "worst": ("worse", "better"),
    "newest": ("newer", "older"),
    "chain": ("previous", "next"),
    "longest": ("longer", "shorter"),
}
Page = Annotated[int, Query(ge=1, le=100_000)]


class Filters(NamedTuple):
    """Filters of a list, and their state in the URL."""

    wanted: RunFilter
    state: dict[str, str]


def _filters(
    suite: str = "",
    status: str = "",
    text: str = "",
    chain: str = "",
    mode: str = "",
    cluster: str = "",
    environment: str = "",
    build: str = "",
    node: str = "",
    since: str = "",
    until: str = "",
) -> Filters:
    if status and status not in _WORDS:
        raise HTTPException(422, f"status: found {status!r}, expected one of {', '.join(_WORDS)}")
    words = {"suite": suite, "status": status, "text": text, "chain": chain, "mode": mode, "cluster": cluster}
    words |= {"environment": environment, "build": build, "node": node}
    wanted = RunFilter(
        since=day_limit("since", since), until=day_limit("until", until, end=True), **cast(dict[str, Any], words)
    )
    return Filters(
        wanted, {name: value for name, value in (words | {"since": since, "until": until}).items() if value}
    )


FiltersDep = Annotated[Filters, Depends(_filters)]


@router.get("/")
def chains(
    request: Request, store: StoreDep, chosen: FiltersDep, order: ChainOrder = "worst", page: Page = 1
) -> Response:
    """Return all chains with the latest run and the statuses of earlier runs; the filters apply to latest runs."""
    listed = store.pages.chains(chosen.wanted, limit=CHAINS, offset=(page - 1) * CHAINS, order=order)
    return _list(
        request, store, "chains.html", listed=listed, chosen=chosen, page=page, per_page=CHAINS, order=order
    )


@router.get("/runs")
def runs(request: Request, store: StoreDep, chosen: FiltersDep, page: Page = 1) -> Response:
    """Return the runs, newest first."""
    listed = store.pages.runs(chosen.wanted, limit=RUNS, offset=(page - 1) * RUNS)
    return _list(request, store, "runs.html", listed=listed, chosen=chosen, page=page, per_page=RUNS, view="runs")


@router.get("/runs/{run_id}")
def run(request: Request, run_id: str, store: StoreDep, chosen: SettingsDep, user: GetUserDep) -> Response:
    """Return the page of a run."""
    data = run_data(store, run_id)
    names = find_dag_run(run_id) if data.run.status is None else None
    view = RunView(data, collect_context(store, data, chosen.home), predecessors_of(store, data.run))
    more: dict[str, Any] = {
        "alerts": store.tracked_alerts.of_run(run_id),
        "bisection": store.documents.get(run_id, BisectionDocument),
        "stoppable": names is not None and can_stop(user, state_and_owner(*names)[1]),
        "decisions": decisions_of(user),
        "refusal": refusal,
        "doubtful": store.documents.get(run_id, DoubtfulDocument),
    }
    return html(request, "run.html", title=run_id, view=view, **more)


def _waiting(store: StoreDep, listed: Listed) -> frozenset[str]:
    """Return the runs that wait for slots, or for an allocation by Slurm, if any listed run has no status."""
    shown = [getattr(row, "latest", row) for row in listed.rows]
    if all(run.status is not None for run in shown):
        return frozenset()
    return store.queue.waiting()


def _list(
    request: Request,
    store: StoreDep,
    template: str,
    *,
    listed: Listed,
    chosen: Filters,
    page: int,
    per_page: int,
    view: str = "",
    order: ChainOrder = "worst",
) -> Response:
    pages = max(1, -(-listed.total // per_page))
    filters = chosen.state | ({"order": order} if order != "worst" else {})

    def link(**changes: object) -> str:
        """Return the URL of the list with changed filters; resets to page 1 unless the page changes."""
        shown = {key: value for key, value in (filters | changes).items() if value}
        return f"{view}?{urlencode(shown)}" if shown else view or "?"

    if page > pages:
        return RedirectResponse(f"{root_of(request)}/{link(page=pages)}", status_code=303, headers=HEADERS)
    return html(
        request,
        template,
        title="Certification",
        listed=listed,
        wanted=chosen.wanted,
        is_filtered=bool(chosen.state),
        state=dict.fromkeys(RunFilter.__dataclass_fields__, "") | chosen.state,
        choices=store.pages.choices(),
        page=page,
        pages=pages,
        order=order,
        directions=_ORDERS[order],
        link=link,
        words=_WORDS,
        suites=store.runs.suites(),
        waiting=_waiting(store, listed),
        now=time.time(),
    )
