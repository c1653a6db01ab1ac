"""The status of a judged run, and its exit code: an unconfirmed regression blocks according to the policy."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import Run, Status, exit_code
from tipcflow.domain.run_documents import JudgementDocument, LeftoversDocument

if TYPE_CHECKING:
    from tipcflow.store import Store

_NEUTRAL = "neutral"
# A step, leg or check with such a status blocks, whatever the policy sets for unconfirmed results.
_BLOCKS = frozenset({Status.INFRA_FAILURE, Status.CANCELLED})


def stopped_by(user: str) -> str:
    """Return who stopped a run, in words; '' for an unknown user."""
    return f"stopped by user {user}" if user else "stopped by a user"


def run_status(
    judged: JudgementDocument, *, steps: Mapping[str, Status], leftovers: Sequence[str], user: str = ""
) -> JudgementDocument:
    """Return the status and reason of a run from its verdict by the checks.

    A stopped run names the step in which it was stopped. A run that left something on a node is an infra_failure.

    Args:
        judged: the verdict.
        steps: step id -> status, in plan order.
        leftovers: messages about what the run left on its nodes.
        user: who stopped the run, '' if unknown.
    """
    if judged.status is Status.CANCELLED:
        stopped = [step for step, word in steps.items() if word is Status.CANCELLED]
        where = f" in {stopped[0]}" if stopped else ""
        judged = JudgementDocument(status=Status.CANCELLED, reason=f"{stopped_by(user)}{where}")
    if leftovers and judged.status.severity < Status.INFRA_FAILURE.severity:
        return JudgementDocument(status=Status.INFRA_FAILURE, reason=leftovers[0])
    return judged


def is_neutral(store: "Store", run: Run) -> bool:
    """Whether a run is `unconfirmed`, its policy does not block on that, and nothing else failed."""
    if run.status is not Status.UNCONFIRMED:
        return False
    documents = store.documents.several(run.id, (PolicyDocument, LeftoversDocument))
    policy, leftovers = documents.get(PolicyDocument), documents.get(LeftoversDocument)
    if policy is None or policy.root.unconfirmed != _NEUTRAL or (leftovers and leftovers.root):
        return False
    statuses = [status for status, _ in store.steps.statuses(run.id).values()]
    statuses += [status for status, _ in store.steps.leg_statuses(run.id).values()]
    statuses += [result.status for result in store.checks.results(run.id) if result.gating]
    return not _BLOCKS.intersection(statuses)


def exit_code_of(store: "Store", run: Run) -> int:
    """Return the exit code of an ended run: that of its status, 0 for a neutral run, 2 without a status."""
    return exit_code(run.status or Status.INFRA_FAILURE, neutral=is_neutral(store, run))


def without_proof(store: "Store", run: Run, why: str) -> Run:
    """Return an ended run whose certificate is incomplete: an `infra_failure` if its exit code would be 0.

    Args:
        why: the reason of such a run.
    """
    if exit_code_of(store, run):
        return run
    return run.model_copy(update={"status": Status.INFRA_FAILURE, "reason": why})
