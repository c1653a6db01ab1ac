"""Decide whether a failed step is retried: by failure class, policy and remaining budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import InfraError, Step
from tipcflow.domain.run.failure import FAILURES, Failure, failures_of
from tipcflow.execute.node.nodes import Nodes

if TYPE_CHECKING:
    from tipcflow.store import Store


@dataclass(frozen=True)
class Retries:
    """Decides about the retries of one run.

    Attributes:
        budget_ends: end of the run's budget, seconds since the epoch.
    """

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
        if self._tried(step, failure) >= allowed:
            return failure.model_copy(update={"why_not": f"already retried {_times(allowed)}"})
        if left_s < took_s:
            said = f"{max(0.0, left_s):.0f} s are left of the run's budget, and the attempt took {took_s:.0f} s"
            return failure.model_copy(update={"why_not": said})
        alive = not_proven_ended(nodes, self.run, step)
        return failure.model_copy(update={"why_not": alive} if alive else {"again": True})

    def _tried(self, step: Step, failure: Failure) -> int:
        """Count the retries of the step for this failure class since the step was last cleared."""
        attempts = [one for one in self.store.attempts(self.run) if one.step == step.id]
        known = failures_of(self.store.document(self.run, FAILURES), attempts)
        count = 0
        for one in reversed(attempts):
            if one.ended_at is None:
                continue  # the attempt that is being closed
            before = known.get((step.id, one.attempt))
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
            for job in sorted(set(left)):
                nodes[name].reap(job)
            left = _left(nodes, name, run, step) if left else []
        except InfraError as error:
            return f"node {name} could not be listed: {error.message}"
        if left:
            return f"processes of the attempt are left on node {name}"
    return ""


def _left(nodes: Nodes, name: str, run: str, step: Step) -> Sequence[str]:
    listed = nodes[name].list_ours()["processes"]
    return [str(one["job"]) for one in listed if str(one["job"]).startswith(f"{run}/{step.id}/")]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
