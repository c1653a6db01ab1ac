"""Exit records -> status words and reasons, by one table."""

import re
from collections.abc import Sequence

from tipcflow.domain import EndReason, ExitRecord, Leg, Status
from tipcflow.execute.gang import culprit
from tipcflow.execute.member import Member

# What the runner, not the model's code, ended a job for.
_BY_REASON = {
    EndReason.DEADLINE: Status.FAILED,
    EndReason.LEASE_EXPIRED: Status.INFRA_FAILURE,
    EndReason.BARRIER_TIMEOUT: Status.INFRA_FAILURE,
    EndReason.REFUSED: Status.INFRA_FAILURE,
    EndReason.LOST: Status.INFRA_FAILURE,
    EndReason.STOPPED: Status.CANCELLED,
}
# Words of the operating system and of Python in a log that mean the node, not the model.
_NODE_TROUBLE = (
    (re.compile(r"No space left on device|\[Errno 28\]"), "the disk is full"),
    (
        re.compile(r"ModuleNotFoundError: No module named '(?:paddle|torch|numpy|PIL)'"),
        "the node's environment lacks a package",
    ),
)


def status_of(record: ExitRecord, log_tail: str = "") -> tuple[Status, str]:
    """(status, reason) of one job or leg; `log_tail` is the end of its log, for what only a log tells."""
    where = f"on node {record.node}"
    if record.reason in _BY_REASON:
        words = record.message or record.reason.value.replace("_", " ")
        return _BY_REASON[record.reason], f"{words} {where}"
    if record.ok:
        return Status.PASS, ""
    for pattern, words in _NODE_TROUBLE:
        if pattern.search(log_tail):
            return Status.INFRA_FAILURE, f"{words} {where}"
    if record.reason is EndReason.SIGNALED:
        return Status.FAILED, f"ended by signal {record.signal} {where}" + (
            " (out of memory)" if record.oom else ""
        )
    if record.exit_code:
        return Status.FAILED, f"exit code {record.exit_code} {where}"
    missing = [output.path for output in record.outputs if not output.exists]
    stale = [output.path for output in record.outputs if output.exists and not output.fresh]
    what = [f"did not write {', '.join(missing)}"] if missing else []
    what += [f"left an older {', '.join(stale)} as it was"] if stale else []
    return Status.FAILED, f"exited with 0 but {' and '.join(what)} {where}"


def reason_of(member: Member) -> str:
    """Why nothing more is heard of a member, in words."""
    return member.lost if member.record is None else status_of(member.record)[1]


def step_outcome(members: Sequence[Member], tails: dict[str, str], *, cancelled: bool) -> tuple[Status, str]:
    """(status, reason) of a step without legs. The culprit is named, and the peers that only followed it.

    Args:
        tails: node name -> end of its log.
    """
    # What had ended before it was told to stop keeps its own status.
    ended = all(m.record is not None and m.record.reason is not EndReason.STOPPED for m in members)
    if cancelled and not ended:
        return Status.CANCELLED, "stopped by a person"
    blamed = culprit(members)
    if blamed is None:
        return Status.PASS, ""
    if blamed.record is None:
        return Status.INFRA_FAILURE, blamed.lost
    status, reason = status_of(blamed.record, tails.get(blamed.name, ""))
    followers = [m.name for m in members if m is not blamed and m.record is not None and not m.record.ok]
    if followers:
        reason += f"; node {', '.join(followers)} followed"
    return status, reason


def leg_outcome(leg: Leg, member: Member, tail: str, *, cancelled: bool) -> tuple[Status, str]:
    """(status, reason) of one leg of an inference step."""
    if leg.not_run:
        return Status.NOT_RUN, leg.not_run
    record = member.legs.get(leg.id)
    if record is not None and not (cancelled and record.reason is EndReason.STOPPED):
        return status_of(record, tail)
    if cancelled:
        return Status.CANCELLED, "stopped by a person"
    if member.record is not None and member.record.reason is not EndReason.EXITED:
        return Status.BLOCKED, f"not started: {member.record.message or member.record.reason.value}"
    return Status.BLOCKED, member.lost or "not started"


def said_of_leg(status: Status) -> Status:
    """The word that is stored of a leg: what a person or a node ended says nothing about the leg itself, so it is
    `blocked`, and its step has the telling word."""
    return Status.BLOCKED if status in (Status.CANCELLED, Status.INFRA_FAILURE) else status


def legs_outcome(statuses: Sequence[tuple[Status, str]], step: tuple[Status, str]) -> tuple[Status, str]:
    """(status, reason) of an inference step from its legs' and from how its job ended as a whole."""
    ran = [status for status, _ in statuses if status is not Status.NOT_RUN]
    if not ran:
        return Status.NOT_RUN, statuses[0][1] if statuses else "no legs"
    counts = {word: ran.count(word) for word in Status if word in ran}
    worst = max(ran, key=lambda status: status.severity)
    if step[0] in (Status.INFRA_FAILURE, Status.CANCELLED):
        return step
    if worst is Status.PASS:
        return Status.PASS, ""
    first = next(reason for status, reason in statuses if status is worst)
    return worst, f"{counts[worst]} of {len(ran)} legs {worst.value.replace('_', ' ')}: {first}"
