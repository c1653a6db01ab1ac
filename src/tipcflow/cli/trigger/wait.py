"""Waiting for the verdicts of runs in Airflow, with progress messages."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tipcflow.cli.trigger.selection import TriggerRequest
from tipcflow.domain import InfraError, Status, TipcflowError
from tipcflow.domain.numbers.units import duration, limit
from tipcflow.domain.run.names import ChainName

if TYPE_CHECKING:
    from tipcflow.airflow_api import Airflow, DagRun, RunFacts

POLL_S = 5.0
# The verdict follows the last task of a DAG run within moments, unless a confirm run is pending.
GRACE_S = 600.0
# A run that never started has nothing to confirm.
GRACE_WITHOUT_RUN_S = 30.0
_LONGEST_CALL_S = 60.0

Note = Callable[[str], None]


@dataclass
class Watched:
    """The known state of one triggered run.

    Attributes:
        status: the final status; None while it is running.
        reason: of the status, in one sentence.
        dag_run: None if it could not be triggered.
    """

    request: TriggerRequest
    dag_run: "DagRun | None" = None
    facts: "RunFacts | None" = None
    status: Status | None = None
    reason: str = ""
    ended_at: float | None = None
    progress: dict[str, str] = field(default_factory=dict)

    @property
    def run(self) -> str:
        """The tipcflow run ID, '' if there is no run."""
        if self.facts is not None:
            return self.facts.run.id
        return self.dag_run.run if self.dag_run else ""

    @property
    def neutral(self) -> bool:
        """Whether the run is `unconfirmed` and its policy makes that neutral."""
        return self.status is Status.UNCONFIRMED and self.facts is not None and self.facts.neutral

    def refuse(self, error: TipcflowError) -> None:
        """Stop following the run because of an error."""
        self.status, self.reason = error.status, str(error)


def wait(
    airflow: "Airflow", runs: Sequence[Watched], *, timeout_s: float, cancel: threading.Event, note: Note
) -> None:
    """Follow runs until each has a status, the timeout passes, or `cancel` is set; then all have a status.

    An unreachable Airflow is retried until the timeout.
    """
    until = time.monotonic() + timeout_s
    silent = ""
    labels = _labels([run.request.chain for run in runs])
    while (open_ := [run for run in runs if run.status is None]) and not cancel.is_set():
        if time.monotonic() >= until:
            break
        for run in open_:
            try:
                _poll(airflow, run, until, labels[run.request.chain], note)
                silent = ""
            except InfraError as error:
                if not silent:
                    note(f"{error.message}; retrying")
                silent = error.message
            except TipcflowError as error:
                run.refuse(error)
        cancel.wait(min(POLL_S, max(0.0, until - time.monotonic())) if any(r.status is None for r in runs) else 0)
    for run in runs:
        if run.status is None:
            run.status, run.reason = _unfinished(run, cancel.is_set(), timeout_s, silent)


def _labels(chains: Sequence[str]) -> dict[str, str]:
    """Return how the messages of each chain begin: with its model if that is unique; a single chain has none."""
    models = {chain: ChainName.parse(chain).model for chain in chains}
    counts = Counter(models.values())
    named = {chain: model if counts[model] == 1 else chain for chain, model in models.items()}
    return {chain: f"{name}: " if len(named) > 1 else "" for chain, name in named.items()}


def _poll(airflow: "Airflow", run: Watched, until: float, label: str, note: Note) -> None:
    assert run.dag_run
    left = max(0.1, min(_LONGEST_CALL_S, until - time.monotonic()))
    run.dag_run = airflow.dag_run(run.dag_run.dag_id, run.dag_run.run_id, deadline_s=left)
    run.facts = airflow.certification_of(run.dag_run, deadline_s=left) or run.facts
    _print_note(run, label, note)
    if not run.dag_run.state.ended:
        run.ended_at = None
        return
    if run.ended_at is None:
        run.ended_at = time.monotonic()
    judged = run.facts.run.status if run.facts else None
    grace = GRACE_S if run.facts else GRACE_WITHOUT_RUN_S
    if judged:
        run.status, run.reason = verdict(run, judged)
    elif time.monotonic() - run.ended_at >= grace:
        run.status = Status.INFRA_FAILURE
        run.reason = f"the DAG run ended as {run.dag_run.state.value} and left {_nothing(airflow, run, left)}"


def verdict(run: Watched, judged: Status) -> tuple[Status, str]:
    """The run's status; a DAG run that failed after a good verdict lost something after it."""
    assert run.dag_run
    assert run.facts
    well = judged.severity <= Status.IMPROVEMENT.severity or run.facts.neutral
    if run.dag_run.state == "failed" and well:
        return Status.INFRA_FAILURE, f"the run is {judged.value}, but its DAG run failed: see its failed task"
    return judged, run.facts.run.reason


def _nothing(airflow: "Airflow", run: Watched, deadline_s: float) -> str:
    if run.facts:
        return "the run without a status"
    assert run.dag_run
    tasks = airflow.task_instances(run.dag_run.dag_id, run.dag_run.run_id, deadline_s=deadline_s)
    red = sorted({task.task_id for task in tasks if task.state == "failed"})
    return f"no run in the metrics database: see the log of {', '.join(red) or 'its tasks'}"


def _unfinished(run: Watched, cancelled: bool, timeout_s: float, silent: str) -> tuple[Status, str]:
    state = run.dag_run.state.value if run.dag_run else "unknown"
    if cancelled:
        return Status.CANCELLED, f"no longer waiting; the DAG run is {state}"
    why = f"; {silent}" if silent else ""
    return Status.INFRA_FAILURE, f"not finished after {limit(timeout_s)}; the DAG run is {state}{why}"


def _print_note(run: Watched, label: str, note: Note) -> None:
    """One line per change: the DAG run's state, and each step that ended."""
    assert run.dag_run
    now = {"DAG run": run.dag_run.state.value}
    for step in run.facts.steps if run.facts else ():
        if step.final:
            took = f" ({duration(step.seconds)})" if step.seconds else ""
            why = f": {step.reason}" if step.reason and step.final is not Status.PASS else ""
            now[step.id] = f"{step.final.value}{took}{why}"
    if run.facts and (confirm_run := run.facts.confirming):
        number = f"{len(confirm_run.earlier) + 1}: " if confirm_run.earlier else ""
        what = ", ".join(confirm_run.keys)
        now["no verdict yet"] = f"re-measuring: {what} (confirm run {number}{confirm_run.run})"
    for what, word in now.items():
        if run.progress.get(what) != word:
            note(f"{label}{what}: {word}")
    run.progress.update(now)
