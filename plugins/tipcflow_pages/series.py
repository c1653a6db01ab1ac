"""Page, JSON and CSV of up to eight metrics over time."""

import json
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from tipcflow.domain import ConfigError
from tipcflow.execute.chain.series import LAST, load_series, parse_lines, siblings_of
from tipcflow.report.canonical import plain
from tipcflow.report.chain.series import MOST_LINES, LineKey, SeriesOverview, series_csv
from tipcflow.report.comparison.tables import amount
from tipcflow_pages.charts.lines import last_text, lines_chart
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.web.days import day_limit
from tipcflow_pages.web.render import HEADERS, html, root_of

router = APIRouter()
# Names of lines that may be added, and rows of the table of runs: a page has at most 100 tab stops.
_MORE, _RUNS = 20, 25
Lines = Annotated[list[str], Query()]
Last = Annotated[int, Query(ge=2, le=LAST)]
Scale = Literal["", "value", "percent"]


@router.get("/series")
def series(
    request: Request,
    store: StoreDep,
    s: Lines = [],  # noqa: B006 - FastAPI copies defaults
    last: Last = 60,
    since: str = "",
    until: str = "",
    scale: Scale = "",
) -> Response:
    """Return the chart of the chosen lines, the newest runs of the first one, and lines that may be added.

    Args:
        s: names of lines, as links of the chain's page have them.
        since, until: only runs of these days, in UTC.
        scale: `percent` shows each line relative to its first accepted runs.
    """
    keys, overview = _overview(store, s, last, since, until, scale)
    state = _State([str(key) for key in keys], last, since, until, scale)
    others, metrics = siblings_of(store, keys[-1]) if keys else ([], [])
    has_capacity = len(keys) < MOST_LINES
    return html(
        request,
        "series.html",
        title="Series - Certification",
        overview=overview,
        keys=keys,
        chart=lines_chart(overview, root=root_of(request)) if any(line.points for line in overview.lines) else "",
        state=state,
        others=[other for other in others if other not in keys][:_MORE] if has_capacity else [],
        metrics=[other for other in metrics if other not in keys][:_MORE] if has_capacity else [],
        points=overview.lines[0].points[::-1][:_RUNS] if keys else (),
        amount=amount,
        last_text=last_text,
        most=MOST_LINES,
    )


@router.get("/api/series", response_model=SeriesOverview)
def series_facts(
    store: StoreDep,
    s: Lines = [],  # noqa: B006
    last: Last = 60,
    since: str = "",
    until: str = "",
    scale: Scale = "",
    format: Literal["json", "csv"] = "json",  # noqa: A002 - the name in the URL
) -> Response:
    """Return the lines as JSON, or as CSV with a row per point."""
    _, overview = _overview(store, s, last, since, until, scale)
    if format == "csv":
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="series.csv"'}
        return Response(series_csv(overview), media_type="text/csv; charset=utf-8", headers=headers)
    return Response(json.dumps(plain(overview), allow_nan=False), media_type="application/json", headers=HEADERS)


def _overview(
    store: StoreDep, s: list[str], last: int, since: str, until: str, scale: Scale
) -> tuple[list[LineKey], SeriesOverview]:
    try:
        keys = parse_lines(s)
    except ConfigError as error:
        raise HTTPException(422, str(error)) from error
    limits = {"since": day_limit("since", since), "until": day_limit("until", until, end=True)}
    return keys, load_series(store, keys, last=last, relative=scale == "percent", **limits)


class _State:
    """The state of the page, and links with changes of it."""

    def __init__(self, lines: list[str], last: int, since: str, until: str, scale: str) -> None:
        self.lines, self.last, self.since, self.until, self.scale = lines, last, since, until, scale

    def query(self, **changes: object) -> str:
        """Return the state with changes as a query; '' removes a name."""
        known: dict[str, object] = {"last": self.last if self.last != 60 else "", "since": self.since}
        known |= {"until": self.until, "scale": self.scale}
        lines = changes.pop("lines", self.lines)
        pairs = [("s", line) for line in lines] if isinstance(lines, list) else []
        return urlencode([*pairs, *((name, value) for name, value in (known | changes).items() if value)])

    def without(self, line: str) -> str:
        """Return the query without a line."""
        return self.query(lines=[other for other in self.lines if other != line])

    def plus(self, line: object) -> str:
        """Return the query with one more line."""
        return self.query(lines=[*self.lines, str(line)])
