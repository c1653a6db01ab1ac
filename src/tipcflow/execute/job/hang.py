"""How long a training may be silent before it is said to hang."""

from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import Plan, Status, Step, StepKind

if TYPE_CHECKING:
    from tipcflow.store import Store

DEFAULT_S = 120.0
LONGEST_S = 1800.0
# So long a job that hangs is left as it is, for its peers to be asked what they look like.
WAIT_S = 10.0
# The document of a run that holds the limit: every task must describe a job alike.
_KEPT = "hang_s"


def hang_limit(store: "Store", run_id: str, plan: Plan, policy: Policy) -> float:
    """Seconds of silence after which a training of the run hangs; 0 for never.

    What the policy says; else as long as the chain's longest accepted training took as a whole, which no silence
    in it can have exceeded, but at least 120 s and at most half an hour; the policy's `hang_first_s` while there
    is no such training: a first one reads a cold data set or builds kernels for minutes, and the ranks' CPU time
    tells nothing, since ranks that wait for each other in NCCL or gloo spin.
    """
    if policy.hang_s is not None:
        return policy.hang_s
    kept = store.document(run_id, _KEPT)
    if kept is None:
        longest = _longest(store, run_id, plan, policy)
        kept = policy.hang_first_s if longest is None else min(LONGEST_S, max(DEFAULT_S, longest))
        store.put_document(run_id, _KEPT, kept)
    return float(kept)


def progress_of(step: Step) -> tuple[str, ...]:
    """Patterns of the logs that show the ranks' progress."""
    return tuple(pattern for pattern in step.artefacts if pattern.rpartition("/")[2].startswith("workerlog"))


def _longest(store: "Store", run_id: str, plan: Plan, policy: Policy) -> float | None:
    """Seconds of the longest training of the accepted runs of this chain, mode, environment; None without one."""
    run = store.get_run(run_id)
    trainings = {step.id for step in plan.steps if step.kind is StepKind.TRAIN}
    past = store.accepted_runs(
        run.chain, run.mode, run.environment, compat=run.compat, exclude=run_id, limit=policy.history
    )
    took = [
        attempt.ended_at - attempt.started_at
        for other in past
        for attempt in store.attempts(other)
        if attempt.step in trainings and attempt.status is Status.PASS and attempt.ended_at is not None
    ]
    return max(took, default=None)
