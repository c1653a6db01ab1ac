"""Nodes, and the same as JSON and CSV."""

import json
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from tipcflow.domain.numbers.units import counted, iso
from tipcflow.execute.overview.flaky import LONGEST
from tipcflow.execute.overview.node_history import HISTORY_DAYS, recent_node_history
from tipcflow.execute.overview.nodes import HOUR_S, LONGEST_H, load_nodes
from tipcflow.report.canonical import plain
from tipcflow.report.overview.node_history import NodeHistory, advice, change_text
from tipcflow.report.overview.nodes import NodesOverview
from tipcflow_pages.charts.axes import Axis
from tipcflow_pages.charts.gantt import MOST_LINKED, gantt
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import HEADERS, html, root_of

router = APIRouter()
HOURS, DAYS = 24.0, 30.0
# Rows of a page; further nodes and slots are in JSON.
LISTED = 60
Hours = Annotated[float, Query(ge=1, le=LONGEST_H, allow_inf_nan=False)]
# Days of runs of the section about slower nodes; 0 leaves it out, because other periods than 90 days take seconds.
HistoryDays = Annotated[float, Query(ge=0, le=LONGEST, allow_inf_nan=False)]
Days = Annotated[float, Query(ge=1, le=LONGEST, allow_inf_nan=False)]
_MARKS = 5
_FIRST_YEAR = 1970


@router.get("/nodes")
def nodes(
    request: Request,
    store: StoreDep,
    cluster: str = "",
    hours: Hours = HOURS,
    days: Days = DAYS,
    until: str = "",
    history: HistoryDays = 0,
) -> Response:
    """Return runs of each node over time, the queue with expected starts, leased slots, failure rates and, on
    request, slower nodes."""
    overview = load_nodes(store, cluster=cluster, hours=hours, days=days, until=_time(until))
    state = page_state(
        {"cluster": cluster, "until": until}, hours=(hours, HOURS), days=(days, DAYS), history=(history, 0.0)
    )
    names = overview.names
    rows = [(row, names[row.cluster, row.node]) for row in overview.nodes[:LISTED]]
    x = Axis(overview.since, overview.until)
    linked = sum(row.runs for row, _ in rows) <= MOST_LINKED
    root = root_of(request)
    return html(
        request,
        "nodes.html",
        title="Nodes - Certification",
        overview=overview,
        waits=_waits(overview),
        history=recent_node_history(store, cluster=cluster, days=history) if history else None,
        advice=advice,
        change_text=change_text,
        rows=[(row, name, gantt(row.lanes, x, node=name, root=root, linked=linked)) for row, name in rows],
        linked=linked,
        marks=_marks(x),
        cluster=cluster,
        clusters=sorted({*store.node_use.clusters(), *([cluster] if cluster else [])}),
        hours=hours,
        history_days=HISTORY_DAYS,
        listed=LISTED,
        earlier=iso(overview.since),
        later=iso(overview.until + hours * HOUR_S) if overview.until + 60 < overview.at else "",
        query=urlencode({name: value for name, value in state.items() if name != "history"}),
        link=PageLink("nodes", state),
    )


@router.get("/api/nodes", response_model=NodesOverview)
def nodes_facts(
    store: StoreDep,
    cluster: str = "",
    hours: Hours = HOURS,
    days: Days = DAYS,
    until: str = "",
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page, with all nodes; as CSV a row per node."""
    return respond(load_nodes(store, cluster=cluster, hours=hours, days=days, until=_time(until)), format)


@router.get("/api/node-history", response_model=NodeHistory)
def node_history_facts(store: StoreDep, cluster: str = "", days: Days = HISTORY_DAYS) -> Response:
    """Return which nodes are slower than before, and since when."""
    text = json.dumps(plain(recent_node_history(store, cluster=cluster, days=days)), allow_nan=False)
    return Response(text, media_type="application/json", headers=HEADERS)


def _waits(overview: NodesOverview) -> str:
    """Return how many runs wait for what; '' if none waits."""
    lines = [
        f"{counted(len(rows), 'run')} {'waits' if len(rows) == 1 else 'wait'} for {what}"
        for rows, what in ((overview.queue, "slots"), (overview.slurm, "an allocation by Slurm"))
        if rows
    ]
    return ", ".join(lines)


def _time(text: str) -> float | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise HTTPException(422, f"until: found {text[:50]!r}, expected a time like 2026-11-24T12:00Z") from error
    if at.year <= _FIRST_YEAR:
        raise HTTPException(422, f"until: found {text[:50]!r}, expected a time after {_FIRST_YEAR}")
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _marks(x: Axis) -> list[tuple[str, str]]:
    """Return (place, text) of times on the axis."""
    times = [x.low + (x.high - x.low) * number / (_MARKS - 1) for number in range(_MARKS)]
    form = "%H:%M" if x.high - x.low <= 2 * HOURS * HOUR_S else "%m-%d"
    return [(f"{100 * x.share(at):.0f}%", datetime.fromtimestamp(at, UTC).strftime(form)) for at in times]
