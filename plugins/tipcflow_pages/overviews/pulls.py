"""Pull requests, and the same as JSON and CSV."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tipcflow.execute.overview.pulls import load_pulls
from tipcflow.report.overview.pulls import Pulls
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
# Chains of one attempt in the list, and on the page of one pull request.
FEW, MANY = 5, 40
Number = Annotated[int | None, Query(ge=0, le=2_000_000_000)]


@router.get("/pulls")
def pulls(request: Request, store: StoreDep, repository: str = "", number: Number = None) -> Response:
    """Return attempts of pull requests, newest first; with `repository` and `number`, those of one."""
    overview = load_pulls(store, repository=repository, number=number)
    state = page_state({"repository": repository, "number": "" if number is None else str(number)})
    return html(
        request,
        "pulls.html",
        title="Pull requests - Certification",
        overview=overview,
        most=MANY if repository and number else FEW,
        is_one=bool(repository and number),
        query=urlencode(state),
        link=PageLink("pulls", state),
    )


@router.get("/api/pulls", response_model=Pulls)
def pulls_facts(
    store: StoreDep,
    repository: str = "",
    number: Number = None,
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page; as CSV a row per chain of each attempt."""
    return respond(load_pulls(store, repository=repository, number=number), format)
