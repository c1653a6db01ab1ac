"""`tipcflow judge --series FILE`: evaluates each series run by run."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tipcflow.cli.detect import read_file
from tipcflow.cli.output.output import columns, terminal_width
from tipcflow.cli.output.records import print_records
from tipcflow.domain import Status

if TYPE_CHECKING:
    from tipcflow.check.baseline.run_by_run import JudgedPoint
    from tipcflow.check.detect import Series

_COLUMNS = ("series", "index", "run", "status", "ratio", "reason")
# Statuses that the table shows only as counts.
_QUIET = frozenset({Status.PASS, Status.INSUFFICIENT_DATA})


def judge_file(path: Path, policy: str, metric: str, *, as_json: bool, as_csv: bool = False) -> None:
    """Print the results of every series of a file."""
    from tipcflow.check.baseline.run_by_run import judge_run_by_run, number_name
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import load_policy

    rules = load_policy(policy, settings().config_dir)
    name = number_name(metric, rules)
    rows: list[tuple[str, ...]] = []
    records: list[dict[str, Any]] = []
    # The whole file is read first: an error in its last line is reported before anything is printed.
    for series in read_file(path):
        points = list(judge_run_by_run(series, name, rules))
        if as_json:
            typer.echo(_line(series, points))
        elif as_csv:
            records += _records(series, points)
        else:
            rows += _rows(series, points)
    if as_csv:
        print_records(records, names=_COLUMNS)
    elif not as_json:
        typer.echo(
            "\n".join(columns(("SERIES", "POINT", "RUN", "STATUS", "REASON"), rows, width=terminal_width()))
        )


def _records(series: "Series", points: "list[JudgedPoint]") -> list[dict[str, Any]]:
    return [
        {
            "series": series.id,
            "index": point.index,
            "run": series.points[point.index].run,
            "status": point.status.value,
            "ratio": point.ratio,
            "reason": point.reason,
        }
        for point in points
    ]


def _line(series: "Series", points: "list[JudgedPoint]") -> str:
    entries = [
        {"index": point.index, "status": point.status.value, "ratio": point.ratio, "reason": point.reason}
        for point in points
    ]
    return json.dumps({"id": series.id, "points": entries}, allow_nan=False)


def _rows(series: "Series", points: "list[JudgedPoint]") -> list[tuple[str, ...]]:
    count = Counter(point.status for point in points)
    counts = ", ".join(f"{number} {status.value}" for status, number in sorted(count.items()))
    shown = [point for point in points if point.status not in _QUIET]
    details = [
        (series.id, str(point.index), series.points[point.index].run, point.status.value, point.reason)
        for point in shown
    ]
    return [(series.id, "all", "", "", counts or "no points"), *details]
