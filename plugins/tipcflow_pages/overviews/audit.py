"""Who did what: decisions in the metrics database, and requests in Airflow's audit log; also as JSON and CSV."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from tipcflow.report.overview.audit import AuditList, audit_list
from tipcflow.store.queries.readonly import ReadonlyStore
from tipcflow_pages.data.audit_log import logged_actions
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
# Newest actions on the page and in the API.
SHOWN, LISTED = 200, 10_000
Days = Annotated[float, Query(ge=1, le=4000, allow_inf_nan=False)]
Who = Annotated[str, Query(max_length=200)]


@router.get("/audit")
def audit(request: Request, store: StoreDep, days: Days = 30, user: Who = "") -> Response:
    """Return the newest actions of users."""
    state = page_state({"user": user}, days=(days, 30))
    return html(
        request,
        "audit.html",
        title="Audit - Certification",
        overview=_actions(store, days, user, SHOWN),
        user=user,
        query=urlencode(state),
        link=PageLink("audit", state),
    )


@router.get("/api/audit", response_model=AuditList)
def audit_facts(store: StoreDep, days: Days = 30, user: Who = "", format: Format = "json") -> Response:  # noqa: A002
    """Return the facts of the page; as CSV a row per action."""
    return respond(_actions(store, days, user, LISTED), format)


def _actions(store: ReadonlyStore, days: float, user: str, limit: int) -> AuditList:
    now = store.now()
    since = now - days * 86_400
    entries = [*store.audit.entries(since), *logged_actions(since, user, limit)]
    return audit_list(entries, at=now, days=days, limit=limit, user=user)
