"""How long a training may be silent before it counts as hung."""

from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import Plan, Status, Step, StepKind
from tipcflow.domain.plan import TOPOLOGY_LOGS
from tipcflow.domain.run_documents import HangDocument

if TYPE_CHECKING:
    from tipcflow.store import Store

DEFAULT_S = 120.0
LONGEST_S = 1800.0
# A hung job is left running for this long, so that its peers' evidence can be collected.
WAIT_S = 10.0


def hang_limit(store: "Store", run_id: str, plan: Plan, policy: Policy) -> float:
    """Return the seconds of silence after which a training of the run counts as hung; 0: never.

    The policy's value if it is set. Otherwise the total duration of the chain's longest accepted training, which
    no silence in it can exceed, but 120 s to 30 min. Without an accepted training the policy's `hang_first_s`: a
    first training reads a cold data set or builds kernels for minutes. The ranks' CPU time is not an indicator,
    because ranks that wait for each other in NCCL or gloo spin.
    """
    if policy.hang_s is not None:
        return policy.hang_s
    stored = store.documents.get(run_id, HangDocument)
    if stored is None:
        longest = _longest(store, run_id, plan, policy)
        limit = policy.hang_first_s if longest is None else min(LONGEST_S, max(DEFAULT_S, longest))
        stored = HangDocument(limit)
        store.documents.put(run_id, stored)
    return stored.root


def progress_of(step: Step) -> tuple[str, ...]:
    """Return glob patterns of the logs that show the ranks' progress."""
    return tuple(
        pattern
        for pattern in step.artefacts
        if pattern.startswith(TOPOLOGY_LOGS) or pattern.rpartition("/")[2].startswith("workerlog")
    )


def _longest(store: "Store", run_id: str, plan: Plan, policy: Policy) -> float | None:
    """Return the duration of the longest accepted training of this chain, mode and environment; None without
    one."""
    run = store.runs.get(run_id)
    trainings = {step.id for step in plan.steps if step.kind is StepKind.TRAIN}
    past = store.history.accepted(
        run.chain, run.mode, run.environment, compat=run.compat, exclude=run_id, limit=policy.history
    )
    took = [
        attempt.duration_s
        for other in past
        for attempt in store.attempts.of(other)
        if attempt.step in trainings and attempt.status is Status.PASS and attempt.duration_s is not None
    ]
    return max(took, default=None)
