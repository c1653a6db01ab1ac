"""`tipcflow show RUN`: one run on one page, failures first."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import print_records, refuse_both
from tipcflow.domain import AttemptKey, CheckResult, Failure, LegKey, Status

if TYPE_CHECKING:
    from tipcflow.report.run.data import RunData

# Columns of --csv.
_COLUMNS = ("run", "check", "status", "gating", "step", "leg", "metric", "reason")


def show(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")],
    every: Annotated[bool, typer.Option("--all", help="A row per check, also of checks without data.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, one row per check, the worst first.")] = False,
) -> None:
    """Show a run: status and reason, steps, legs, checks, nodes, logs, and how to reproduce it."""
    from tipcflow.cli.show.page import page
    from tipcflow.config.settings import settings
    from tipcflow.execute.comparison.predecessors import predecessors_of
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.execute.verdict.run_data import load_run
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        spool.apply(settings().home, store)
        data = load_run(store, store.runs.find(run))
        before = predecessors_of(store, data.run)
    logs = settings().runs_dir / data.run.id
    if as_json:
        print_json(_as_json(data, logs))
    elif as_csv:
        worst_first = sorted(data.checks, key=lambda result: -result.status.severity)
        print_records([_record(data.run.id, result) for result in worst_first], names=_COLUMNS)
    else:
        echo_lines(page(data, logs, width=terminal_width(), before=before.best, every=every))


def _record(run: str, result: CheckResult) -> dict[str, Any]:
    return {"run": run, **{name: getattr(result, name) for name in _COLUMNS[1:]}}


def _as_json(data: "RunData", logs: Path) -> dict[str, Any]:
    facts = data.facts

    def stored(statuses: Mapping[LegKey, Status]) -> dict[str, dict[str, str]]:
        return {
            str(key): {"status": status.value, "reason": facts.step_reason.get(key, "")}
            for key, status in statuses.items()
        }

    return {
        "run": data.run.model_dump(),
        "counts": data.counts,
        "steps": stored({LegKey(step): status for step, status in facts.step_status.items()}),
        "legs": stored(facts.leg_status),
        "checks": [result.model_dump() for result in data.checks],
        "attempts": [attempt.model_dump() for attempt in data.attempts],
        "failures": [_failure(key, failure) for key, failure in data.all_failures.items()],
        "nodes": [node.model_dump() for node in facts.node_facts],
        "plan": data.plan.model_dump() if data.plan else None,
        "environment_changes": data.unlike_before,
        "logs": str(logs),
    }


def _failure(key: AttemptKey, failure: Failure) -> dict[str, Any]:
    """A failed attempt with its remedy."""
    return {
        "step": key.step,
        "attempt": key.attempt,
        **failure.model_dump(mode="json"),
        "means": failure.remedy.means,
        "advice": failure.remedy.advice,
        "retry_helps": failure.remedy.retries > 0,
    }
