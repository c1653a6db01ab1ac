"""Rows of the overviews as CSV."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tipcflow.domain.numbers.units import iso
from tipcflow.report.overview.alerts import Alerts
from tipcflow.report.overview.audit import AuditList
from tipcflow.report.overview.changes import Changes
from tipcflow.report.overview.coverage import Coverage
from tipcflow.report.overview.decisions import AbList, AbMetric, AbRow, QuarantineList, QuarantineRow
from tipcflow.report.overview.flaky import Flaky, Rate
from tipcflow.report.overview.matrix import Matrix
from tipcflow.report.overview.nodes import NodeRow, NodesOverview
from tipcflow.report.overview.pulls import PullRow, Pulls
from tipcflow.report.overview.scaling import ScalingList, ScalingSeries, TopologyRow
from tipcflow.report.overview.today import Today
from tipcflow.report.overview.versions import Pair, Versions

_PROBLEM = ("is_new", "kind", "status", "chain", "mode", "cluster", "environment", "framework", "run")
_PROBLEM_TIMES = ("started_at", "first_bad", "first_bad_at", "last_good", "last_good_at", "suspects", "reason")
_CHANGE = (
    "direction",
    "status",
    "state",
    "chain",
    "mode",
    "cluster",
    "environment",
    "step",
    "leg",
    "metric",
    "ratio",
)
_CHANGE_TIMES = (
    "first",
    "first_at",
    "last_good",
    "last_good_at",
    "newest",
    "runs",
    "changed",
    "who",
    "why",
    "reason",
)
_COVERAGE = ("chain", "suite", "declared", "lines", "passing", "legs", "legs_ran", "legs_passed", "newest_run")


_PAIR = ("kind", "chain", "mode", "cluster", "environment")
_PAIR_RUNS = ("base_status", "base_run", "new_status", "new_run", "reason")
_PULL = ("repository", "number", "head_sha", "attempt", "mode", "state", "why", "created_at", "ended_at")
_PULL_CHAIN = ("chain", "status", "run", "reason", "base", "changes", "predicted_s", "took_s")
_NODE = ("cluster", "node", "runs", "busy", "ended_runs", "infra_failures", "lost")

_SERIES = ("series", "chain", "cluster", "framework", "created_at", "precision", "rule")

_ALERT = ("number", "group", "state", "owner", "chain", "suite", "mode", "environment", "about", "suspects")
_ALERT_RUNS = ("first", "first_at", "last_good", "newest", "newest_at", "runs", "gone", "gone_at")

Overview = (
    Alerts
    | Today
    | Coverage
    | Flaky
    | Changes
    | Matrix
    | NodesOverview
    | QuarantineList
    | AbList
    | Versions
    | Pulls
    | ScalingList
    | AuditList
)

# Overviews whose rows have the columns as attributes -> columns, and the attribute with the rows.
_ROWS: dict[type, tuple[tuple[str, ...], str]] = {
    Alerts: ((*_ALERT, *_ALERT_RUNS), "rows"),
    AuditList: (("at", "who", "action", "about", "run", "text"), "entries"),
    Changes: ((*_CHANGE, *_CHANGE_TIMES), "rows"),
    Coverage: ((*_COVERAGE, "newest_at", "gaps", "not_run"), "chains"),
    QuarantineList: (tuple(QuarantineRow.model_fields), "quarantines"),
    Today: ((*_PROBLEM, *_PROBLEM_TIMES), "problems"),
}


def csv_of(overview: Overview) -> str:
    """Return the rows of an overview as CSV with a header; times are ISO 8601.

    A row is a problem, chain, change, alert, cell, node, quarantine, pair of runs, chain of an attempt, topology
    of a scaling chain, metric of an A/B comparison, or action of a user.
    """
    if listed := _ROWS.get(type(overview)):
        names, rows = listed
        return _csv(names, [{name: getattr(row, name) for name in names} for row in getattr(overview, rows)])
    if isinstance(overview, Matrix):
        names = ("suite", "model", overview.by, "status", "run", "started_at", "runs", "bad")
        return _csv(names, list(_cells(overview)))
    if isinstance(overview, NodesOverview):
        return _csv(_NODE, [_node(row) for row in overview.nodes])
    if isinstance(overview, Versions):
        return _csv(_PAIR + _PAIR_RUNS, [_pair(row) for row in overview.pairs])
    if isinstance(overview, Pulls):
        return _csv(_PULL + _PULL_CHAIN, [row for attempt in overview.attempts for row in _pull(attempt)])
    if isinstance(overview, ScalingList):
        names = (*_SERIES, *TopologyRow.model_fields)
        return _csv(names, [row for series in overview.series for row in _scaling(series)])
    if isinstance(overview, AbList):
        names = (*(name for name in AbRow.model_fields if name != "metrics"), *AbMetric.model_fields)
        return _csv(names, [row for comparison in overview.comparisons for row in _ab(comparison)])
    assert isinstance(overview, Flaky)
    names = ("chain", "groups", "mixed", *Rate.model_fields, "newest_red", "newest_green")
    return _csv(
        names,
        [
            {"chain": row.chain, "groups": row.groups, "mixed": row.mixed, **row.disagreeing.model_dump()}
            | {"newest_red": row.examples[0].red, "newest_green": row.examples[0].green}
            for row in overview.chains
        ],
    )


def _cells(matrix: Matrix) -> Iterator[dict[str, Any]]:
    for row in matrix.rows:
        for column in matrix.columns:
            if column in row.cells:
                yield {"suite": row.suite, "model": row.model, matrix.by: column, **row.cells[column].model_dump()}


def _scaling(series: ScalingSeries) -> Iterator[dict[str, Any]]:
    own = {"series": series.run} | series.model_dump(exclude={"topologies", "notes", "previous", "run"})
    for row in series.topologies:
        yield own | row.model_dump()


def _ab(comparison: AbRow) -> Iterator[dict[str, Any]]:
    own = comparison.model_dump(exclude={"metrics"})
    for metric in comparison.metrics:
        yield own | metric.model_dump()
    if not comparison.metrics:
        yield own | dict.fromkeys(AbMetric.model_fields, "")


def _pull(attempt: PullRow) -> Iterator[dict[str, Any]]:
    own = attempt.model_dump(exclude={"chains"})
    for chain in attempt.chains:
        yield own | chain.model_dump() | {"changes": ", ".join(change.text for change in chain.changes)}
    if not attempt.chains:
        yield own | dict.fromkeys(_PULL_CHAIN, "")


def _pair(row: Pair) -> dict[str, Any]:
    sides = {
        f"{name}_{key}": getattr(side, key) if side else None
        for name, side in (("base", row.base), ("new", row.new))
        for key in ("status", "run")
    }
    return {
        name: getattr(row, name) for name in ("kind", "chain", "mode", "cluster", "environment", "reason")
    } | sides


def _node(row: NodeRow) -> dict[str, Any]:
    rate = row.infrastructure
    ended = {"ended_runs": rate.runs if rate else 0, "infra_failures": rate.hits if rate else 0}
    return {name: getattr(row, name) for name in ("cluster", "node", "runs", "busy", "lost")} | ended


def _csv(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(name, row[name]) for name in names] for row in rows)
    return text.getvalue()


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if name == "at" or name.endswith("_at"):
        return iso(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {count}" for key, count in value.items())
    if isinstance(value, tuple):
        return "; ".join(value)
    return str(value).lower() if isinstance(value, bool) else value
