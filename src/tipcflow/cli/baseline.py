"""`tipcflow baseline …`: the baselines of metrics, and the decisions of users about them."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.output.person import person
from tipcflow.domain import ConfigError, Run, plain_metric
from tipcflow.domain.numbers.metrics import metric as known_metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcflow.config.policy import Policy
    from tipcflow.store import Baseline, Store

app = typer.Typer(no_args_is_help=True, help="Baselines of runs, and decisions about them.")

RunName = Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")]
Because = Annotated[str, typer.Option(help="Reason; stored with your name.")]
Who = Annotated[str, typer.Option(help="Author. Default: the current user.")]
Metrics = Annotated[list[str] | None, typer.Option("--metric", help="Only this metric; may be repeated.")]
Steps = Annotated[str, typer.Option("--step", help="Only this step.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def _group() -> None:
    """Baselines that a run's metrics are compared with."""


@app.command("show")
def show(
    run: RunName = "latest",
    metric: Metrics = None,
    step: Steps = "",
    policy: Annotated[str, typer.Option(help="Policy. Default: the run's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show the baseline of a run's metrics, and all decisions about them."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import policy_of
    from tipcflow.store import Store

    with Store.open() as store:
        found = store.find_run(run)
        rules = policy_of(store, found, policy, settings().config_dir)
        made = store.baseline_decisions(found.chain, found.mode, found.environment)
        rows = _in_force(store, found, metric or [], step, made, rules)
        decisions = [
            one
            for one in made
            if (not metric or {one.metric, plain_metric(one.metric)} & set(metric)) and step in ("", one.step)
        ]
    if as_json:
        decided = [one.model_dump(mode="json") | {"value": _finite(one.value)} for one in decisions]
        about = {"run": found.id, "environment": found.environment, "policy": rules.name}
        print_json(about | {"baselines": rows, "decisions": decided})
        return
    typer.echo(
        f"{found.chain} in {found.mode} on {found.environment or 'an unknown environment'}, policy {rules.name}"
    )
    table = [
        (
            row["step"],
            row["leg"],
            row["metric"],
            "-" if row["value"] is None else f"{row['value']:.6g} {row['unit']}".strip(),
            row["kind"],
            str(row["runs"]),
        )
        for row in rows
    ]
    width = terminal_width()
    if not table:
        typer.echo("no metrics that are compared")
        return
    echo_lines(columns(("STEP", "LEG", "METRIC", "BASELINE", "KIND", "RUNS"), table, width=width))
    if decisions:
        typer.echo("")
        told = sorted({(one.accepted_at, _word(one), one.run, one.who, one.why) for one in decisions})
        echo_lines(
            columns(
                ("WHEN", "DECIDED", "RUN", "WHO", "BECAUSE"),
                [(_when(at), word, about, who, why) for at, word, about, who, why in told],
                width=width,
            )
        )


@app.command("accept")
def accept(
    run: RunName,
    because: Because,
    who: Who = "",
    metric: Metrics = None,
    step: Steps = "",
    as_json: AsJson = False,
) -> None:
    """Accept a run's metrics: their history restarts with this run; the old one stays visible."""
    _decide(run, because, who, metric, step, as_json, pinned=False)


@app.command("pin")
def pin(
    run: RunName,
    because: Because,
    who: Who = "",
    metric: Metrics = None,
    step: Steps = "",
    as_json: AsJson = False,
) -> None:
    """Pin a run's metrics: later runs are also compared with them, which detects slow drifts."""
    _decide(run, because, who, metric, step, as_json, pinned=True)


@app.command("reset")
def reset(
    run: RunName,
    because: Because,
    who: Who = "",
    metric: Metrics = None,
    step: Steps = "",
    as_json: AsJson = False,
) -> None:
    """Cancel accept and pin decisions for a run's metrics: all accepted runs count again."""
    _decide(run, because, who, metric, step, as_json, pinned=False, value=math.nan)


def _decide(
    run: str,
    because: str,
    who: str,
    metrics: list[str] | None,
    step: str,
    as_json: bool,
    *,
    pinned: bool,
    value: float | None = None,
) -> None:
    import time

    from tipcflow.store import Baseline, Store

    if not because.strip():
        raise ConfigError("a decision needs a reason", key="--because", expected="the reason, in one sentence")
    with Store.open() as store:
        found = store.find_run(run)
        numbers = _numbers(store, found, metrics or [], step)
        if found.status is None:
            raise ConfigError(f"run {found.id} is running", expected="a finished run")
        at = time.time()
        made = [
            Baseline(
                chain=found.chain,
                mode=found.mode,
                step=about,
                leg=leg,
                metric=name,
                environment=found.environment,
                value=number if value is None else value,
                unit=known_metric(plain_metric(name)).unit,
                pinned=pinned,
                run=found.id,
                who=person(who),
                why=because.strip(),
                accepted_at=at,
            )
            for (about, leg, name), number in numbers.items()
        ]
        store.accept_baselines(made)
    if as_json:
        print_json([one.model_dump(mode="json") | {"value": _finite(one.value)} for one in made])
        return
    typer.echo(f"{_word(made[0])}: {len(made)} metric values of {found.chain} in {found.mode}, run {found.id}")


def _numbers(store: "Store", run: Run, metrics: list[str], step: str) -> dict[tuple[str, str, str], float]:
    """(step, leg, metric) -> the run's value of each comparable metric that the options select.

    Raises:
        ConfigError: the run has no such metric.
    """
    found: dict[tuple[str, str, str], float] = {}
    for key, number in store.past_run(run.id).medians.items():
        about, leg, name = key.split("|")
        plain = plain_metric(name)
        if known_metric(plain).better == "none" or (metrics and not {name, plain} & set(metrics)):
            continue
        if step in ("", about):
            found[(about, leg, name)] = number
    if not found:
        wanted = f" of {', '.join(metrics)}" if metrics else ""
        raise ConfigError(f"run {run.id} has no comparable value{wanted}", hint="`tipcflow show RUN`")
    return found


def _in_force(
    store: "Store", run: Run, metrics: list[str], step: str, decisions: "Sequence[Baseline]", rules: "Policy"
) -> list[dict[str, Any]]:
    """The baselines of a run's metrics as its checks compute them (`level_of`), with pinned values."""
    from tipcflow.check.baseline.level import level_of
    from tipcflow.execute.verdict.check_context import decided, history_of

    in_force = decided(decisions)
    past = history_of(store, run, in_force.starts, rules, as_of=run.ended_at)
    rows = []
    for about, leg, name in _numbers(store, run, metrics, step):
        key = f"{about}|{leg}|{name}"
        values = [one.medians[key] for one in past if math.isfinite(one.medians.get(key, math.nan))]
        level = level_of(values, name, rules)
        row: dict[str, Any] = {
            "step": about,
            "leg": leg,
            "metric": name,
            "unit": known_metric(plain_metric(name)).unit,
        }
        start = in_force.starts.get(key)
        kind = f"since {start}" if start else "automatic"
        rows.append(row | {"value": level.base if values else None, "kind": kind, "runs": len(level.runs)})
        pinned = in_force.pins.get(key)
        if pinned:
            rows.append(row | {"value": pinned.value, "kind": f"pinned from {pinned.run}", "runs": 1})
    return rows


def _word(one: "Baseline") -> str:
    if not math.isfinite(one.value):
        return "reset"
    return "pinned" if one.pinned else "accepted"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _when(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
