"""Scaling chains, and the same as JSON and CSV."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tipcflow.execute.overview.flaky import LONGEST
from tipcflow.execute.overview.scaling import load_scaling
from tipcflow.report.overview.scaling import ScalingList
from tipcflow_pages.charts.scaling import scaling_chart
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
PER_PAGE, DAYS = 10, 365.0
Days = Annotated[float, Query(ge=1, le=LONGEST, allow_inf_nan=False)]


@router.get("/scaling")
def scaling(
    request: Request,
    store: StoreDep,
    days: Days = DAYS,
    chain: str = "",
    cluster: str = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """Return throughput, speed-up and efficiency by topology, the newest series first."""
    overview = load_scaling(store, days=days, chain=chain, cluster=cluster)
    pages = max(1, -(-len(overview.series) // PER_PAGE))
    page = min(page, pages)
    state = page_state({"chain": chain, "cluster": cluster}, days=(days, DAYS))
    shown = overview.series[(page - 1) * PER_PAGE : page * PER_PAGE]
    return html(
        request,
        "scaling.html",
        title="Scaling - Certification",
        overview=overview,
        shown=[(series, scaling_chart(series)) for series in shown],
        chain=chain,
        cluster=cluster,
        page=page,
        pages=pages,
        query=urlencode(state),
        link=PageLink("scaling", state),
    )


@router.get("/api/scaling", response_model=ScalingList)
def scaling_facts(
    store: StoreDep,
    days: Days = DAYS,
    chain: str = "",
    cluster: str = "",
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page; as CSV a row per topology of each series."""
    return respond(load_scaling(store, days=days, chain=chain, cluster=cluster), format)
