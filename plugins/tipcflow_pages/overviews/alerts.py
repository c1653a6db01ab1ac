"""Alerts, one alert, and the same as JSON and CSV."""

import json
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import Response

from tipcflow.domain import ConfigError
from tipcflow.domain.alert.entry import MEANINGS
from tipcflow.execute.overview.alerts import WantedAlerts, load_alert, load_alerts
from tipcflow.execute.overview.flaky import LONGEST
from tipcflow.report.canonical import plain
from tipcflow.report.overview.alerts import STATES, AlertDetail, Alerts
from tipcflow_operators.airflow.internals import GetUserDep
from tipcflow_pages.actions.decide import decisions_of
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import HEADERS, html

router = APIRouter()
LISTED = 100
Days = Annotated[float, Query(ge=0, le=LONGEST, allow_inf_nan=False)]
State = Literal["open", "new", "acknowledged", "expected", "fixed", "invalid", "all"]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("/alerts")
def alerts(
    request: Request,
    store: StoreDep,
    suite: str = "",
    chain: str = "",
    owner: str = "",
    state: State = "open",
    days: Days = 0,
) -> Response:
    """Return alerts by cause, open ones first."""
    wanted = WantedAlerts(suite=suite, chain=chain, owner=owner, state=state)
    filters = {"suite": suite, "chain": chain, "owner": owner, "state": state if state != "open" else ""}
    chosen = page_state(filters, days=(days, 0))
    return html(
        request,
        "alerts.html",
        title="Alerts - Certification",
        overview=load_alerts(store, wanted, days=days),
        wanted=wanted,
        states=STATES,
        meanings=MEANINGS,
        suites=store.runs.suites(),
        listed=LISTED,
        query=PageLink("", chosen)().removeprefix("?"),
        link=PageLink("alerts", chosen),
    )


@router.get("/alerts/{number}")
def alert(request: Request, number: Number, store: StoreDep, user: GetUserDep) -> Response:
    """Return the page of an alert."""
    title = f"Alert {number} - Certification"
    detail = _detail(store, number)
    decisions = decisions_of(user)
    return html(request, "alert.html", title=title, detail=detail, meanings=MEANINGS, decisions=decisions)


@router.get("/api/alerts", response_model=Alerts)
def alerts_facts(
    store: StoreDep,
    suite: str = "",
    chain: str = "",
    owner: str = "",
    state: State = "open",
    days: Days = 0,
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page; as CSV a row per alert."""
    wanted = WantedAlerts(suite=suite, chain=chain, owner=owner, state=state)
    return respond(load_alerts(store, wanted, days=days), format)


@router.get("/api/alerts/{number}", response_model=AlertDetail)
def alert_facts(number: Number, store: StoreDep) -> Response:
    """Return one alert with its history."""
    text = json.dumps(plain(_detail(store, number)), allow_nan=False)
    return Response(text, media_type="application/json", headers=HEADERS)


def _detail(store: StoreDep, number: int) -> AlertDetail:
    try:
        return load_alert(store, number)
    except ConfigError as error:
        raise HTTPException(404, f"no such alert: {number}") from error
