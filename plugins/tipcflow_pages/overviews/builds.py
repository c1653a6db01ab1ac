"""Changes and Matrix, and the same as JSON and CSV."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tipcflow.execute.overview.changes import Wanted, load_changes
from tipcflow.execute.overview.flaky import LONGEST
from tipcflow.execute.overview.matrix import MOST_COLUMNS, MOST_ROWS, By, Grid, load_matrix
from tipcflow.report.overview.changes import STATES, Changes
from tipcflow.report.overview.matrix import COLUMNS, SIGNS, Matrix
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
LISTED, PER_PAGE = 100, 50
Days = Annotated[float, Query(ge=1, le=LONGEST, allow_inf_nan=False)]
Direction = Literal["", "worse", "better"]
State = Literal["", "open", "accepted", "over"]
Columns = Annotated[int, Query(ge=1, le=MOST_COLUMNS)]


@router.get("/changes")
def changes(
    request: Request,
    store: StoreDep,
    suite: str = "",
    chain: str = "",
    direction: Direction = "",
    state: State = "",
    days: Days = 30,
) -> Response:
    """Return changed metrics, grouped by the change of framework and suite that they began with."""
    wanted = Wanted(suite=suite, chain=chain, direction=direction, state=state)
    overview = load_changes(store, wanted, days=days)
    chosen = page_state(vars(wanted), days=(days, 30))
    return html(
        request,
        "changes.html",
        title="Changes - Certification",
        overview=overview,
        wanted=wanted,
        suites=store.runs.suites(),
        states=STATES,
        listed=LISTED,
        query=urlencode(chosen),
        link=PageLink("changes", chosen),
    )


@router.get("/api/changes", response_model=Changes)
def changes_facts(
    store: StoreDep,
    suite: str = "",
    chain: str = "",
    direction: Direction = "",
    state: State = "",
    days: Days = 30,
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page; as CSV a row per change."""
    wanted = Wanted(suite=suite, chain=chain, direction=direction, state=state)
    return respond(load_changes(store, wanted, days=days), format)


@router.get("/matrix")
def matrix(
    request: Request,
    store: StoreDep,
    by: By = "build",
    columns: Columns = 12,
    suite: str = "",
    chain: str = "",
    problems: bool = False,
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """Return models in rows, the worst first, and builds, environment classes, modes or variants in columns."""
    grid = Grid(by=by, columns=columns, suite=suite, chain=chain, problems=problems)
    overview = load_matrix(store, grid, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    pages = max(1, -(-overview.total // PER_PAGE))
    if page > pages:
        page = pages
        overview = load_matrix(store, grid, limit=PER_PAGE, offset=(page - 1) * PER_PAGE)
    filters = {
        "by": by if by != "build" else "",
        "suite": suite,
        "chain": chain,
        "problems": "true" if problems else "",
    }
    chosen = page_state(filters, columns=(columns, 12))
    shown = {cell.status for row in overview.rows for cell in row.cells.values()}
    return html(
        request,
        "matrix.html",
        title="Matrix - Certification",
        overview=overview,
        grid=grid,
        page=page,
        pages=pages,
        kinds=COLUMNS,
        signs={status: sign for status, sign in SIGNS.items() if status in shown},
        suites=store.runs.suites(),
        query=urlencode(chosen),
        link=PageLink("matrix", chosen),
    )


@router.get("/api/matrix", response_model=Matrix)
def matrix_facts(
    store: StoreDep,
    by: By = "build",
    columns: Columns = 12,
    suite: str = "",
    chain: str = "",
    problems: bool = False,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = MOST_ROWS,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    format: Format = "json",  # noqa: A002
) -> Response:
    """Return the facts of the page, at most 200 models at once; as CSV a row per cell."""
    grid = Grid(by=by, columns=columns, suite=suite, chain=chain, problems=problems)
    return respond(load_matrix(store, grid, limit=limit, offset=offset), format)
