"""Decide whether a failed step is retried: by failure class, policy and remaining budget."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import InfraError, Step
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.run.failure import Failure
from tipcflow.domain.run.names import JobId
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.execute.node.listing import jobs_with_processes
from tipcflow.execute.node.nodes import Nodes

if TYPE_CHECKING:
    from tipcflow.store import Store


@dataclass(frozen=True)
class Retries:
    """Decides about the retries of one run."""

    store: "Store"
    run: str
    policy: Policy

    def decide(self, step: Step, failure: Failure, nodes: Nodes, *, took_s: float, left_s: float) -> Failure:
        """Return the failure with `again` set, or with `why_not` if its class permits a retry and something
        prevents it.

        Args:
            took_s: duration of the attempt.
            left_s: remaining budget of the run.
        """
        allowed = self.policy.retries_of(failure.failure_class)
        if not allowed:
            return failure
        if failure.cause:
            return failure.model_copy(update={"why_not": f"the cause is in {failure.cause}, which has ended"})
        if self._tried(step, failure) >= allowed:
            return failure.model_copy(update={"why_not": f"already retried {_times(allowed)}"})
        if left_s < took_s:
            reason = f"{limit(max(0.0, left_s))} of the run's budget left; last attempt took {limit(took_s)}"
            return failure.model_copy(update={"why_not": reason})
        alive = not_proven_ended(nodes, self.run, step)
        return failure.model_copy(update={"why_not": alive} if alive else {"again": True})

    def _tried(self, step: Step, failure: Failure) -> int:
        """Count the retries of the step for this failure class since the step was last cleared."""
        attempts = [attempt for attempt in self.store.attempts.of(self.run) if attempt.step == step.id]
        failures = (self.store.documents.get(self.run, FailuresDocument) or FailuresDocument()).of(attempts)
        count = 0
        for attempt in reversed(attempts):
            if attempt.ended_at is None:
                continue  # the attempt that is being closed
            before = failures.get(AttemptKey(step.id, attempt.attempt))
            if before is None or not before.again:
                break
            count += before.failure_class is failure.failure_class
        return count


def not_proven_ended(nodes: Nodes, run: str, step: Step) -> str:
    """Why processes of the step may still be running; '' if every node was listed and has none.

    Processes found on a node are ended first.
    """
    for name in step.nodes:
        try:
            left = _left(nodes, name, run, step)
            for job in left:
                nodes[name].reap(job)
            left = _left(nodes, name, run, step) if left else []
        except InfraError as error:
            return f"node {name} could not be listed: {error.message}"
        if left:
            return f"processes of the attempt are left on node {name}"
    return ""


def _left(nodes: Nodes, name: str, run: str, step: Step) -> list[JobId]:
    return jobs_with_processes(nodes[name].list_ours(), run, step.id)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
