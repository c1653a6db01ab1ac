"""`tipcflow baseline …`: the baselines of metrics, and the decisions of users about them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.account import Because, Who, account_name
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import ConfigError, Run, plain_metric
from tipcflow.domain.numbers.metrics import metric as known_metric
from tipcflow.domain.numbers.units import finite, size, utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tipcflow.config.policy import Policy
    from tipcflow.store import Baseline, Store

app = typer.Typer(no_args_is_help=True, help="Baselines of runs, and decisions about them.")

RunName = Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")]
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
    as_csv: AsCsv = False,
) -> None:
    """Show the baseline of a run's metrics, and all decisions about them."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.decide.baselines import decision_word
    from tipcflow.execute.verdict.judge import policy_of
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        target = store.runs.find(run)
        rules = policy_of(store, target, policy, settings().config_dir)
        made = store.baselines.decisions(target.chain, target.mode, target.environment)
        rows = _in_force(store, target, metric or [], step, made, rules)
        decisions = [
            decision
            for decision in made
            if (not metric or {decision.metric, plain_metric(decision.metric)} & set(metric))
            and step in ("", decision.step)
        ]
    if as_csv:
        print_records(rows)
        return
    if as_json:
        active = [item.model_dump(mode="json") | {"value": finite(item.value)} for item in decisions]
        about = {"run": target.id, "environment": target.environment, "policy": rules.name}
        print_json(about | {"baselines": rows, "decisions": active})
        return
    typer.echo(
        f"{target.chain} in {target.mode} on {target.environment or 'an unknown environment'}, policy {rules.name}"
    )
    table = [
        (
            row["step"],
            row["leg"],
            row["metric"],
            "-" if row["value"] is None else _measured(row["value"], row["unit"]),
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
        made_by = sorted(
            {(item.accepted_at, decision_word(item), item.run, item.who, item.why) for item in decisions}
        )
        entries = [(utc(at), *others) for at, *others in made_by]
        echo_lines(columns(("WHEN", "DECIDED", "RUN", "WHO", "BECAUSE"), entries, width=width))


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
    _decide(run, because, who, metric, step, as_json, "accept")


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
    _decide(run, because, who, metric, step, as_json, "pin")


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
    _decide(run, because, who, metric, step, as_json, "reset")


def _decide(
    run: str, because: str, who: str, metrics: list[str] | None, step: str, as_json: bool, kind: str
) -> None:
    from tipcflow.execute.decide.baselines import BaselineKind, decision_line, draft_baselines
    from tipcflow.store import Store

    if not because.strip():
        raise ConfigError("a decision needs a reason", key="--because", expected="the reason, in one sentence")
    with Store.open() as store:
        made = draft_baselines(
            store,
            store.runs.find(run),
            BaselineKind(kind),
            who=account_name(who),
            why=because.strip(),
            metrics=metrics or (),
            step=step,
        )
        store.baselines.accept(made)
    if as_json:
        print_json([baseline.model_dump(mode="json") | {"value": finite(baseline.value)} for baseline in made])
        return
    typer.echo(decision_line(made))


def _in_force(
    store: "Store", run: Run, metrics: list[str], step: str, decisions: "Sequence[Baseline]", rules: "Policy"
) -> list[dict[str, Any]]:
    """The baselines of a run's metrics as its checks compute them (`metric_limits`), with pinned values."""
    from tipcflow.check.baseline.detector_limits import metric_limits
    from tipcflow.check.context import observed_values
    from tipcflow.execute.decide.baselines import comparable_values
    from tipcflow.execute.verdict.check_context import active_decisions, doubtful_runs, history_of

    in_force = active_decisions(decisions)
    past = history_of(store, run, in_force.starts, rules, as_of=run.ended_at)
    doubtful = doubtful_runs(store, run, past, limit=rules.history, as_of=run.ended_at)
    rows = []
    for key in comparable_values(store, run, metrics, step):
        known = metric_limits(observed_values(past, key, doubtful), key.metric, rules)
        row: dict[str, Any] = {
            "step": key.step,
            "leg": key.leg,
            "metric": key.metric,
            "unit": known_metric(key.plain_metric).unit,
        }
        start = in_force.starts.get(key)
        kind = f"since {start}" if start else "automatic"
        rows.append(row | {"value": known.base, "kind": kind, "runs": len(known.level.runs)})
        pinned = in_force.pins.get(key)
        if pinned:
            rows.append(row | {"value": pinned.value, "kind": f"pinned from {pinned.run}", "runs": 1})
    return rows


def _measured(value: float, unit: str) -> str:
    """A value with its unit; sizes as `tipcflow show` prints them."""
    return size(value) if unit == "bytes" else f"{value:.6g} {unit}".strip()
