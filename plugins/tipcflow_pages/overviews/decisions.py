"""Quarantines and A/B comparisons, and the same as JSON and CSV."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tipcflow.execute.overview.decisions import load_ab, load_quarantines
from tipcflow.execute.overview.flaky import LONGEST
from tipcflow.report.overview.decisions import AbList, QuarantineList
from tipcflow_operators.airflow.internals import GetUserDep
from tipcflow_pages.actions.decide import decisions_of
from tipcflow_pages.data.dag_run import dag_run_state
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
PER_PAGE = 25
Show = Literal["active", "all"]
Days = Annotated[float, Query(ge=1, le=LONGEST, allow_inf_nan=False)]
Page = Annotated[int, Query(ge=1, le=100_000)]


@router.get("/quarantines")
def quarantines(
    request: Request, store: StoreDep, user: GetUserDep, show: Show = "active", page: Page = 1
) -> Response:
    """Return quarantined failures, those that end first at the top."""
    ended = show == "all"
    overview = load_quarantines(store, ended=ended, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    pages = max(1, -(-overview.total // PER_PAGE))
    if page > pages:
        page = pages
        overview = load_quarantines(store, ended=ended, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    state = page_state({"show": show if ended else ""})
    return html(
        request,
        "quarantines.html",
        title="Quarantines - Certification",
        overview=overview,
        decisions=decisions_of(user),
        ended=ended,
        page=page,
        pages=pages,
        query=urlencode(state),
        link=PageLink("quarantines", state),
    )


@router.get("/api/quarantines", response_model=QuarantineList)
def quarantines_facts(
    store: StoreDep,
    show: Show = "active",
    limit: Annotated[int, Query(ge=1, le=100)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page, at most 100 quarantines at once; as CSV a row per quarantine."""
    return respond(load_quarantines(store, ended=show == "all", limit=limit, offset=offset), format)


@router.get("/ab")
def ab(request: Request, store: StoreDep, days: Days = 90, started: str = "") -> Response:
    """Return A/B comparisons with their decided metrics, newest first.

    Args:
        started: ID of the run of the DAG `ab` that a user has started now.
    """
    state = page_state({}, days=(days, 90))
    return html(
        request,
        "ab.html",
        title="A/B - Certification",
        overview=load_ab(store, days=days),
        started=started,
        state=dag_run_state("ab", started) if started else "",
        query=urlencode(state),
        link=PageLink("ab", state),
    )


@router.get("/api/ab", response_model=AbList)
def ab_facts(store: StoreDep, days: Days = 90, format: Format = "json") -> Response:  # noqa: A002
    """Return the facts of the page; as CSV a row per metric of each comparison."""
    return respond(load_ab(store, days=days), format)
