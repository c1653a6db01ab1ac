"""`tipcflow history CHAIN METRIC`: a metric's values in the runs of a chain."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.chains import find_chain
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.domain import ConfigError
from tipcflow.domain.errors import did_you_mean
from tipcflow.domain.numbers.environment import differences
from tipcflow.domain.numbers.units import utc_minute
from tipcflow.domain.run.names import StepId

if TYPE_CHECKING:
    from pandas import DataFrame

    from tipcflow.store import Store

# Newest runs that are searched for metrics, after an unknown one.
_LOOKED_AT = 5
_WEEK_S = 7 * 24 * 3600.0
_NUMBERS = ("median", "mean", "p10", "p90", "lowest", "highest")


def history(
    chain: Annotated[
        str, typer.Argument(help="Chain, for example PaddleClas/ResNet50/train_infer_python, or its model.")
    ],
    metric: Annotated[str, typer.Argument(help="Metric, e.g. batch_cost.")],
    step: Annotated[str, typer.Option("--step", help="Step ID, or its last part.")] = "train",
    leg: Annotated[str | None, typer.Option("--leg", help="Only this leg of an inference step.")] = None,
    environment: Annotated[
        str, typer.Option("--environment", help="Environment class, or part of one, e.g. v100.")
    ] = "",
    mode: Annotated[str, typer.Option("--mode", help="Only runs in this mode.")] = "",
    weeks: Annotated[float | None, typer.Option("--weeks", help="Only runs of the last N weeks.", min=0)] = None,
    each: Annotated[bool, typer.Option("--each", help="One row per process instead of one in total.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, with all columns.")] = False,
) -> None:
    """Show a metric's history over the runs of a chain, oldest first (median over nodes, ranks and samples)."""
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    since = None if weeks is None else time.time() - weeks * _WEEK_S
    with Store.open() as store:
        known = find_chain(store, chain)
        frame = store.frames.history(known, step, metric, environment, leg=leg, mode=mode, since=since, each=each)
        measured = _measured(store, known, step) if frame.empty else []
    if frame.empty:
        requested = {"environment": environment, "leg": leg, "mode": mode, "weeks": weeks}
        if measured and metric not in measured:
            raise ConfigError(
                f"step {step} of {known} has no such metric",
                key="METRIC",
                found=metric,
                expected=f"one of {', '.join(measured)}",
                hint=did_you_mean(metric, measured),
            )
        raise ConfigError(
            f"no run of {known} has {metric} in step {step}",
            found=", ".join(f"{name} {word}" for name, word in requested.items() if word),
            hint="`tipcflow export RUN` writes all measurements of a run",
        )
    if as_csv:
        typer.echo(frame.to_csv(index=False, na_rep="nan"), nl=False)
    elif as_json:
        print_json([_plain(row) for row in _rows(frame)])
    else:
        rows = _rows(frame)
        echo_lines(table(rows, each=each))
        for line in others(rows):
            typer.echo(line, err=True)


def _measured(store: "Store", chain: str, step: str) -> list[str]:
    """Return the metrics that the newest run with a step of this ID or name measured in it."""
    for run in store.runs.newest(chain=chain, limit=_LOOKED_AT):
        keys = store.history.past_run(run.id).medians
        if names := {key.plain_metric for key in keys if step in (key.step, StepId.parse(key.step).name)}:
            return sorted(names)
    return []


def table(rows: list[dict[str, Any]], *, each: bool) -> list[str]:
    """The history as a text table; values that all rows share are printed once, above it."""
    shared = {name: rows[0][name] for name in ("unit", "environment", "mode") if len({r[name] for r in rows}) == 1}
    caption = ", ".join(f"{name} {value}" for name, value in shared.items() if value)
    varying = [name for name in ("environment", "mode") if name not in shared]
    legs = ["leg"] if any(row["leg"] for row in rows) else []
    process = ["node", "rank"] if each else []
    numbers = ("median", "p10", "p90", "lowest", "highest")
    names = ["at", "status", "n", *numbers, *process, *legs, *varying, "framework", "run"]
    cells = [[_cell(name, row[name]) for name in names] for row in rows]
    head = [name.upper() for name in names]
    return [*([caption] if caption else []), *columns(head, cells, width=terminal_width())]


def others(rows: list[dict[str, Any]]) -> list[str]:
    """How other environments differ from the newest run's; runs of different environments are not compared."""
    newest = rows[-1]["environment"]
    environments = sorted({row["environment"] for row in rows} - {newest})
    if not environments:
        return []
    differing = [
        f"{environment or 'unknown'}: {', '.join(differences(newest, environment))}"
        for environment in environments
    ]
    return [f"not compared with the newest run's environment, {newest or 'unknown'}:", *differing]


def _rows(frame: "DataFrame") -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _cell(name: str, value: Any) -> str:
    if name == "at":
        return utc_minute(value.timestamp())
    if name in _NUMBERS:
        return f"{value:.6g}"
    if name == "status":
        return "" if value is None else str(value)
    return str(value)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"at": row["at"].isoformat()}
