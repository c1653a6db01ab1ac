"""Today, Coverage and Flaky, and the same as JSON and CSV."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from tipcflow.execute.overview.coverage import load_coverage
from tipcflow.execute.overview.flaky import LONGEST, load_flaky
from tipcflow.execute.overview.today import Scope, load_today
from tipcflow.report.overview.coverage import GAPS, Coverage
from tipcflow.report.overview.flaky import Flaky
from tipcflow.report.overview.today import Today
from tipcflow_pages.data.data import SettingsDep, StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
LISTED, PER_PAGE = 100, 100
Days = Annotated[float, Query(ge=0, le=LONGEST, allow_inf_nan=False)]


@router.get("/today")
def today(
    request: Request,
    store: StoreDep,
    suite: str = "",
    chain: str = "",
    mode: str = "",
    cluster: str = "",
    build: str = "",
    days: Days = 14,
    new_days: Days = 7,
) -> Response:
    """Return a sentence per framework build, new and known problems, and what is running."""
    scope = Scope(suite=suite, chain=chain, mode=mode, cluster=cluster, build=build)
    overview = load_today(store, scope, days=days, new_days=new_days)
    state = page_state(vars(scope), days=(days, 14), new_days=(new_days, 7))
    return html(
        request,
        "today.html",
        title="Today - Certification",
        overview=overview,
        scope=scope,
        suites=store.runs.suites(),
        listed=LISTED,
        query=urlencode(state),
        link=PageLink("today", state),
    )


@router.get("/coverage")
def coverage(
    request: Request,
    store: StoreDep,
    chosen: SettingsDep,
    suite: str = "",
    gap: str = "",
    days: Days = 14,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """Return totals, gaps, reasons of legs that did not run, and chains with gaps, the worst first."""
    if gap and gap not in GAPS:
        raise HTTPException(422, f"gap: found {gap!r}, expected one of {', '.join(GAPS)}")
    overview = load_coverage(store, chosen.config_dir, days=days, suite=suite)
    chains = [each for each in overview.chains if (gap in each.gaps if gap else each.gaps)]
    pages = max(1, -(-len(chains) // PER_PAGE))
    page = min(page, pages)
    state = page_state({"suite": suite, "gap": gap}, days=(days, 14))
    return html(
        request,
        "coverage.html",
        title="Coverage - Certification",
        overview=overview,
        chains=chains[(page - 1) * PER_PAGE : page * PER_PAGE],
        total=len(chains),
        page=page,
        pages=pages,
        meanings=GAPS,
        gap=gap,
        suite=suite,
        suites=sorted({*store.runs.suites(), *(each.suite for each in overview.chains)}),
        query=urlencode({name: value for name, value in state.items() if name != "gap"}),
        link=PageLink("coverage", state),
    )


@router.get("/flaky")
def flaky(
    request: Request,
    store: StoreDep,
    suite: str = "",
    days: Annotated[float, Query(ge=1, le=LONGEST, allow_inf_nan=False)] = 90,
) -> Response:
    """Return chains whose equal runs ended differently, and nodes, with confidence intervals."""
    overview = load_flaky(store, days=days, suite=suite)
    state = page_state({"suite": suite}, days=(days, 90))
    return html(
        request,
        "flaky.html",
        title="Flaky - Certification",
        overview=overview,
        suite=suite,
        suites=store.runs.suites(),
        listed=LISTED,
        query=urlencode(state),
        link=PageLink("flaky", state),
    )


@router.get("/api/today", response_model=Today)
def today_facts(
    store: StoreDep,
    suite: str = "",
    chain: str = "",
    mode: str = "",
    cluster: str = "",
    build: str = "",
    days: Days = 14,
    new_days: Days = 7,
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page; as CSV a row per problem."""
    scope = Scope(suite=suite, chain=chain, mode=mode, cluster=cluster, build=build)
    return respond(load_today(store, scope, days=days, new_days=new_days), format)


@router.get("/api/coverage", response_model=Coverage)
def coverage_facts(
    store: StoreDep,
    chosen: SettingsDep,
    suite: str = "",
    days: Days = 14,
    format: Format = "json",  # noqa: A002
) -> Response:
    """Return the facts of the page, with all chains; as CSV a row per chain."""
    return respond(load_coverage(store, chosen.config_dir, days=days, suite=suite), format)


@router.get("/api/flaky", response_model=Flaky)
def flaky_facts(
    store: StoreDep,
    suite: str = "",
    days: Annotated[float, Query(ge=1, le=LONGEST, allow_inf_nan=False)] = 90,
    format: Format = "json",  # noqa: A002
) -> Response:
    """Return the facts of the page; as CSV a row per chain."""
    return respond(load_flaky(store, days=days, suite=suite), format)
