"""`tipcflow detect`: change points in series of measurements, found by the detector that runs use."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.domain import ConfigError, Status
from tipcflow.domain.errors import why_unreadable
from tipcflow.domain.numbers.units import percent

if TYPE_CHECKING:
    from tipcflow.check.detect.series import Alert, Series
    from tipcflow.config.policy import Policy


def detect(
    series: Annotated[
        Path, typer.Option("--series", help="JSON Lines file: one series per line, oldest point first.")
    ],
    policy: Annotated[str, typer.Option("--policy", help="weekly, pr, or a policy file.")],
    metric: Annotated[
        str,
        typer.Option("--metric", help="Evaluate this metric as the checks do. Default: the detector alone."),
    ] = "",
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            min=16,
            max=1000,
            help="Number of earlier runs. Default: the policy's `history`; without --metric its `detect.window`.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per series, in input order.")
    ] = False,
) -> None:
    """Detect change points in series of measurements (online, no look-ahead).

    Exit code 0 with or without alerts, 2 for an invalid file.
    """
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import load_policy

    rules = load_policy(policy, settings().config_dir)
    if window is not None:
        rules = rules.with_window(window)
    all_series = read_file(series)
    show = _as_json if as_json else _as_text
    # All or nothing: an error in the last series is reported before anything is printed.
    lines = [
        show(item, *result) for item, result in zip(all_series, _results(all_series, metric, rules), strict=True)
    ]
    typer.echo("\n".join(lines))


def _results(
    all_series: "list[Series]", metric: str, rules: "Policy"
) -> "Iterator[tuple[list[Alert], list[int] | None]]":
    """The alerts of each series, and the unconfirmed points; None for the detector alone, which reports none."""
    from tipcflow.check.baseline.run_by_run import judge_run_by_run, number_name
    from tipcflow.check.detect import judge_series

    if not metric:
        for alerts in judge_series(all_series, rules.gate_of()):
            yield list(alerts), None
        return
    name = number_name(metric, rules)
    for series in all_series:
        points = list(judge_run_by_run(series, name, rules, accept_changes=True))
        doubts = [point.index for point in points if point.status is Status.UNCONFIRMED]
        yield [point.change for point in points if point.change is not None], doubts


def read_file(path: Path) -> "list[Series]":
    """All series of a file.

    Raises:
        ConfigError: the file cannot be read, or a line is not a series (with file, line, key, found, expected).
    """
    from tipcflow.check.detect import read_series

    try:
        with path.open(encoding="utf-8") as lines:
            all_series = list(read_series(lines, file=str(path)))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot be read: {why_unreadable(error)}", file=str(path), expected="a JSON Lines file"
        ) from error
    if not all_series:
        raise ConfigError("contains no series", file=str(path), expected="one JSON object per line")
    return all_series


def _as_json(series: "Series", alerts: "list[Alert]", unconfirmed: list[int] | None) -> str:
    entries = [
        {
            "index": alert.index,
            "direction": alert.direction,
            "size": round(alert.size, 6),
            "confidence": None if alert.confidence is None else round(alert.confidence, 6),
        }
        for alert in alerts
    ]
    doubts = {} if unconfirmed is None else {"unconfirmed": unconfirmed}
    return json.dumps({"id": series.id, "alerts": entries} | doubts)


def _as_text(series: "Series", alerts: "list[Alert]", unconfirmed: list[int] | None) -> str:
    lines = [(alert.index, _alert_text(series, alert)) for alert in alerts]
    lines += [
        (index, f"unconfirmed: point {index} (run {series.points[index].run})") for index in unconfirmed or ()
    ]
    return "\n".join([f"{series.id}: {_points(series)}", *(f"  {text}" for _, text in sorted(lines))])


def _points(series: "Series") -> str:
    return f"{len(series.points)} points"


def _alert_text(series: "Series", alert: "Alert") -> str:
    run = series.points[alert.index].run
    by = "beyond the limit" if alert.confidence is None else f"confidence {alert.confidence:.4f}"
    proof = ", confirmed" if alert.confirmed else ""
    return (
        f"{alert.direction} by {percent(alert.size)} at point {alert.index} (run {run}), "
        f"since point {alert.since}; {by}{proof}"
    )
