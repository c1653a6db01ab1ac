"""`tipcflow plan --budget`: what fits, what is dropped and what stays unproven."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from tipcflow.budget import Fit, Limits, PlannedChain, PlannedStep, Samples, fit, planned_chain
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.plan.durations import database_missing
from tipcflow.config.repository import Budget, load_repository
from tipcflow.config.settings import Settings
from tipcflow.config.suite import find_config
from tipcflow.domain import ConfigError, Plan, TipcflowError
from tipcflow.domain.numbers.units import minutes
from tipcflow.execute.changes.fitted import predictions, repository_limits, samples_of

# A limit in minutes alone does not limit nodes.
_MANY = 10_000


def print_budget(plan: Plan, settings: Settings, limits: Limits, *, as_json: bool) -> None:
    """Print the predicted minutes of a chain within its limits, and what is dropped."""
    past = past_of(plan, settings)
    chain = planned_chain(plan, past.samples, limits)
    result = fit([chain], limits)
    if as_json:
        print_json({**as_dict(chain, result, limits), "predictions": list(past.predictions)})
        return
    _print(chain, result, limits)
    for prediction in past.predictions:
        expected, actual = minutes(float(prediction["predicted_s"])), minutes(float(prediction["took_s"]))
        took = f"predicted {expected} min, took {actual} min"
        typer.echo(f"{prediction['run']}  {prediction['status']}  {took}")


def limits_of(budget: str, config_dir: Path) -> Limits:
    """The limits of `--budget`: minutes without a reserve, or the limits of a repository's file.

    Raises:
        ConfigError: neither a positive number nor a file of configs/repositories.
    """
    try:
        minutes = float(budget)
    except ValueError:
        path = find_config(budget, config_dir / "repositories", what="budget")
        return repository_limits(load_repository(path, config_dir).budget)
    if not 0 < minutes < math.inf:
        raise ConfigError("is not a time", key="--budget", found=budget, expected="minutes, more than 0")
    return Limits(chain_s=60 * minutes, total_s=60 * minutes, nodes=_MANY, unknown_s=60 * Budget().unknown_minutes)


def as_dict(chain: PlannedChain, result: Fit, limits: Limits) -> dict[str, object]:
    """The result as JSON; times in seconds."""
    return {
        "chain": chain.chain,
        "budget_s": limits.total_s,
        "reserve_s": limits.reserve_s,
        "full_s": chain.planned_s,
        "predicted_s": result.total_s,
        "node_s": sum(fitted.node_seconds for fitted in result.chains),
        "runs": bool(result.chains),
        "steps": [_step_as_dict(step) for step in chain.steps],
        "unknown": list(chain.unknown),
        "dropped_legs": [vars(leg) for leg in result.legs],
        "dropped_chains": [vars(dropped) for dropped in result.dropped],
        "unproven": list(result.unproven),
    }


def _step_as_dict(step: PlannedStep) -> dict[str, object]:
    """A step with its legs: predicted seconds, these with spread, and node-seconds."""
    legs = [
        {"leg": leg.id, **_times(leg.estimate.seconds, leg.estimate.planned, step.nodes, leg.estimate.runs)}
        for leg in step.legs
    ]
    return {
        "step": step.id,
        **_times(step.expected_s, step.planned_s, step.nodes, step.estimate.runs),
        "legs": legs,
    }


def _times(expected_s: float, planned_s: float, nodes: int, runs: int) -> dict[str, float]:
    return {"predicted_s": expected_s, "planned_s": planned_s, "node_s": planned_s * nodes, "runs": runs}


@dataclass(frozen=True)
class Past:
    """Stored durations and predictions of a chain.

    Attributes:
        predictions: of runs of pull requests, newest first: run, status, predicted and real seconds.
    """

    samples: Samples
    predictions: tuple[dict[str, str | float], ...] = ()


def past_of(plan: Plan, settings: Settings) -> Past:
    """Durations and predictions of the plan's chain; none without a readable database."""
    from tipcflow.store import Store

    if database_missing(settings.database_url):
        return Past(Samples({}, {}))
    try:
        with Store.open(settings.database_url, migrate=False) as store:
            return Past(samples_of(store, plan), predictions(store, plan.chain))
    except TipcflowError as error:
        print(f"no predicted minutes: {error.message}", file=sys.stderr)  # noqa: T201
        return Past(Samples({}, {}))


def _row(name: str, nodes: int, expected_s: float, planned_s: float, runs: int) -> tuple[str, ...]:
    times = (minutes(expected_s), minutes(planned_s), minutes(planned_s * nodes))
    return (name, str(nodes), *times, str(runs))


def _print(chain: PlannedChain, result: Fit, limits: Limits) -> None:
    rows: list[tuple[str, ...]] = []
    for step in chain.steps:
        rows.append(_row(step.id, step.nodes, step.expected_s, step.planned_s, step.estimate.runs))
        for leg in step.legs:
            estimate = leg.estimate
            rows.append(_row(f"  {leg.id}", step.nodes, estimate.seconds, estimate.planned, estimate.runs))
    head = ("STEP AND LEG", "NODES", "MINUTES", "WITH SPREAD", "NODE-MINUTES", "PAST RUNS")
    echo_lines(columns(head, rows, width=terminal_width()))
    limit = min(limits.chain_s, limits.total_s - limits.reserve_s)
    reserve = f"; {minutes(limits.reserve_s)} min are kept for a confirm run" if limits.reserve_s else ""
    predicted = f"{minutes(chain.planned_s)} min with spread, {minutes(chain.node_s)} node-minutes"
    typer.echo(f"\npredicted {predicted}, budget {minutes(limit)} min{reserve}")
    if chain.unknown:
        typer.echo(f"no history, {minutes(limits.unknown_s)} min assumed: {', '.join(chain.unknown)}")
    for line in result.unproven:
        typer.echo(f"dropped: {line}")
    if result.legs and result.chains:
        typer.echo(f"without these: {minutes(result.total_s)} min")
    if not result.unproven:
        typer.echo("everything fits")
