"""Decisions about a running attempt: when evidence is collected, and when and why running members are stopped.

Pure functions of what a process knows about the members; `tipcflow run` and every Airflow task use the same.
"""

from collections.abc import Collection
from dataclasses import dataclass

from tipcflow.domain import EndReason, JobSpec, StoppedBy
from tipcflow.execute.failure.root_cause import by_a_user, find_root_cause, is_failed, is_root_cause
from tipcflow.execute.job.member import Member

# Peers of a crashed Paddle worker abort within 2-3 s (the launcher polls every few seconds), later on a loaded
# node. A member that is still silent after this grace period is the one that its peers were waiting for.
PEER_GRACE_S = 8.0
# Added to the job's own deadlines, which the runner enforces: after that the node counts as unresponsive.
SLACK_S = 60.0
# From `stop` to an exit record: TERM, the runner's kill_after_s, KILL, and the transfer of the record.
STOP_S = 30.0


@dataclass(frozen=True)
class Decision:
    """What to do next with an attempt.

    Attributes:
        gather: collect evidence from all nodes, before any member is stopped.
        stop: reason of the stop request for all running members; '' to let them run.
        by: initiator of the stop request.
    """

    gather: bool = False
    stop: str = ""
    by: StoppedBy = StoppedBy.CONTROLLER


def decide(
    members: Collection[Member],
    *,
    together: bool,
    cancelled: bool = False,
    late: bool = False,
    trouble_s: float = 0.0,
) -> Decision:
    """Return what to do next, as far as the members are known.

    Args:
        together: whether one failure ends the other members (a gang); independent nodes continue.
        cancelled: whether a user stopped the step.
        late: whether the members are running after all deadlines of their runners.
        trouble_s: seconds since the first member was seen lost or failed.
    """
    if all(member.done for member in members):
        return Decision()
    if cancelled:
        return Decision(stop="stopped by a user", by=StoppedBy.USER)
    if late:
        return Decision(gather=True, stop="no exit record in time", by=StoppedBy.CONTROLLER)
    hung = any(map(_hangs, members))
    if together and any(map(is_failed, members)):
        if any(map(is_root_cause, members)):
            return Decision(gather=hung, stop="a peer failed", by=StoppedBy.PEER)
        if trouble_s > PEER_GRACE_S:
            reason = "peers exited; this rank did not (likely hung)"
            return Decision(gather=True, stop=reason, by=StoppedBy.PEER)
    return Decision(gather=hung)


def is_cancelled(members: Collection[Member], *, requested: bool) -> bool:
    """Whether a user ended an attempt.

    Args:
        requested: whether this process received a user's stop request; otherwise the exit records show it.
    """
    named = None if requested else find_root_cause(list(members))
    return requested or (named is not None and by_a_user(named))


def latest_end(spec: JobSpec, began_at: float) -> float:
    """Return when a job must have ended by the deadlines that its runner enforces.

    Args:
        began_at: start of the attempt, on the clock of the result.
    """
    return began_at + spec.barrier_s + spec.deadline_s + SLACK_S


def _hangs(member: Member) -> bool:
    return bool(member.hangs) or (member.record is not None and member.record.reason is EndReason.HANG)
