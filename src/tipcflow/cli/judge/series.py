"""`tipcflow judge --series FILE`: evaluates each series run by run."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tipcflow.cli.detect import read_file
from tipcflow.cli.output.output import columns, terminal_width
from tipcflow.domain import Status

if TYPE_CHECKING:
    from tipcflow.check.baseline.run_by_run import JudgedPoint
    from tipcflow.check.detect import Series

# Statuses that the table shows only as counts.
_QUIET = frozenset({Status.PASS, Status.INSUFFICIENT_DATA})


def judge_file(path: Path, policy: str, metric: str, *, as_json: bool) -> None:
    """Print the results of every series of a file."""
    from tipcflow.check.baseline.run_by_run import judge_run_by_run, number_name
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import load_policy

    rules = load_policy(policy, settings().config_dir)
    name = number_name(metric, rules)
    rows: list[tuple[str, ...]] = []
    # The whole file is read first: an error in its last line is reported before anything is printed.
    for series in read_file(path):
        points = list(judge_run_by_run(series, name, rules))
        if as_json:
            typer.echo(_line(series, points))
        else:
            rows += _rows(series, points)
    if not as_json:
        typer.echo(
            "\n".join(columns(("SERIES", "POINT", "RUN", "STATUS", "REASON"), rows, width=terminal_width()))
        )


def _line(series: "Series", points: "list[JudgedPoint]") -> str:
    said = [
        {"index": one.index, "status": one.status.value, "ratio": one.ratio, "reason": one.reason}
        for one in points
    ]
    return json.dumps({"id": series.id, "points": said}, allow_nan=False)


def _rows(series: "Series", points: "list[JudgedPoint]") -> list[tuple[str, ...]]:
    count = Counter(one.status for one in points)
    words = ", ".join(f"{number} {status.value}" for status, number in sorted(count.items()))
    shown = [one for one in points if one.status not in _QUIET]
    found = [
        (series.id, str(one.index), series.points[one.index].run, one.status.value, one.reason) for one in shown
    ]
    return [(series.id, "all", "", "", words or "no points"), *found]
