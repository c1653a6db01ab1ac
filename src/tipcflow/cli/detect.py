"""`tipcflow detect`: change points in series of measurements, found by the detector that runs use."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from tipcflow.check.detect.series import Alert, Series


def detect(
    series: Annotated[
        Path, typer.Option("--series", help="JSON Lines file: one series per line, oldest point first.")
    ],
    policy: Annotated[str, typer.Option("--policy", help="weekly, pr, or a policy file.")],
    metric: Annotated[
        str,
        typer.Option("--metric", help="Metric whose policy floor applies. Default: `detect.floor`."),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per series, in input order.")
    ] = False,
) -> None:
    """Detect change points in series of measurements (online, no look-ahead).

    Exit code 0 with or without alerts, 2 for an invalid file.
    """
    from tipcflow.check.baseline.run_by_run import number_name
    from tipcflow.check.detect import judge_series
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import load_policy

    rules = load_policy(policy, settings().config_dir)
    rule = rules.gate_of(number_name(metric, rules) if metric else "")
    found = read_file(series)
    show = _as_json if as_json else _as_text
    # All or nothing: an error in the last series is reported before anything is printed.
    lines = [show(one, alerts) for one, alerts in zip(found, judge_series(found, rule), strict=True)]
    typer.echo("\n".join(lines))


def read_file(path: Path) -> "list[Series]":
    """All series of a file.

    Raises:
        ConfigError: the file cannot be read, or a line is not a series (with file, line, key, found, expected).
    """
    from tipcflow.check.detect import read_series

    try:
        with path.open(encoding="utf-8") as lines:
            found = list(read_series(lines, file=str(path)))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path), expected="a JSON Lines file") from error
    if not found:
        raise ConfigError("contains no series", file=str(path), expected="one JSON object per line")
    return found


def _as_json(series: "Series", alerts: "Iterable[Alert]") -> str:
    said = [
        {
            "index": alert.index,
            "direction": alert.direction,
            "size": round(alert.size, 6),
            "confidence": round(alert.confidence, 6),
        }
        for alert in alerts
    ]
    return json.dumps({"id": series.id, "alerts": said})


def _as_text(series: "Series", alerts: "Iterable[Alert]") -> str:
    return "\n".join([f"{series.id}: {_points(series)}", *(f"  {_alert_text(series, alert)}" for alert in alerts)])


def _points(series: "Series") -> str:
    return f"{len(series.points)} points"


def _alert_text(series: "Series", alert: "Alert") -> str:
    run = series.points[alert.index].run
    proof = ", confirmed" if alert.confirmed else ""
    return (
        f"{alert.direction} by {alert.size:+.1%} at point {alert.index} (run {run}), "
        f"since point {alert.since}; confidence {alert.confidence:.4f}{proof}"
    )
