"""Find the member that caused the failure of a gang; the others failed as a consequence."""

from collections.abc import Mapping, Sequence

from tipcflow.domain import EndReason, ExitRecord, StoppedBy
from tipcflow.execute.failure.classify import STOPPED
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.servers import member_of_first
from tipcflow.execute.job.member import Member
from tipcflow.parse.failures.failure import find_failure

_NOTHING = LogDiagnosis()


def is_failed(member: Member) -> bool:
    """Whether a member was lost or failed."""
    return bool(member.lost) or (member.record is not None and not member.record.ok)


def was_stopped(member: Member) -> bool:
    """Whether the member was stopped."""
    return member.record is not None and member.record.reason is EndReason.STOPPED


def by_a_user(member: Member) -> bool:
    """Whether a user stopped the member."""
    return member.record is not None and was_stopped(member) and member.record.stopped_by is StoppedBy.USER


def ended_from_outside(member: Member) -> bool:
    """Whether a shutdown, an operator, a controller or an unknown initiator on a full disk ended the member: not a
    user, a peer or its own code."""
    record = member.record
    if record is None or not was_stopped(member):
        return False
    return record.stopped_by in STOPPED or (record.stopped_by is None and record.disk_full)


def is_root_cause(member: Member) -> bool:
    """Whether a member failed in a way that no peer can cause, as far as known now."""
    if member.lost:
        return True
    if ended_from_outside(member):
        return True
    record = member.record
    if record is None or record.ok or record.is_collateral or record.reason is EndReason.STOPPED:
        return False
    failure = find_failure(member.recent) if record.reason is EndReason.EXITED else None
    return failure is None or not failure.is_collateral


def find_root_cause(
    members: Sequence[Member],
    diagnoses: Mapping[str, LogDiagnosis] | None = None,
    skew: Mapping[str, float] | None = None,
) -> Member | None:
    """Return the member that caused the failure, None if all succeeded.

    In this order: a node whose link broke before any member failed; with parameter servers, the member whose
        process died first; a member that ended by itself with a cause of
        its own; a lost node; a node where a process exited without a message; a member that was running after its
        peers had reported a missing rank, and had to be stopped; a collateral failure only if no other member
        qualifies. Among several candidates the one that ended first.

    Args:
        diagnoses: node -> diagnosis of its logs, as far as they were parsed.
        skew: node -> clock offset ahead of the controller's clock, seconds.
    """
    diagnoses, skew = diagnoses or {}, skew or {}
    bad = [member for member in members if is_failed(member)]
    first_lost = _gone_first(bad)
    if first_lost is not None:
        return first_lost
    if (first_died := member_of_first(bad, skew)) is not None:
        return first_died
    ranked = [(_strength(member, diagnoses.get(member.name, _NOTHING), bad), member) for member in bad]
    if not ranked:
        return None
    best = min(strength for strength, _ in ranked)
    equal = [member for strength, member in ranked if strength == best]
    return min(equal, key=lambda member: (_ended_at(member, skew), member.down_since or float("inf")))


def _gone_first(bad: Sequence[Member]) -> Member | None:
    """Return the member whose link broke first: a peer that fails later fails because of it, whatever its exit
    code."""
    first_end = min((m.known_at for m in bad if is_root_cause(m) and not m.lost), default=float("inf"))
    lost = [m for m in bad if m.lost and 0 < m.down_since < first_end]
    return min(lost, key=lambda m: m.down_since, default=None)


def _strength(member: Member, diagnosis: LogDiagnosis, bad: Sequence[Member]) -> int:
    """Return the rank of a member as a candidate for the root cause: 0 is the strongest."""
    record = member.record
    if record is None:
        return 1
    if ended_from_outside(member):
        return 0
    if record.reason is EndReason.STOPPED:
        # It was still training or waiting after its peers had exited: without another cause, this is the hang.
        return 3 if any(_is_collateral(other.record) for other in bad) else 5
    if diagnosis.trouble is not None and not diagnosis.trouble.is_collateral:
        return 0
    if diagnosis.silent >= 0:
        return 2
    return 4 if diagnosis.is_collateral or record.is_collateral else 0


def _is_collateral(record: ExitRecord | None) -> bool:
    return record is not None and record.reason is EndReason.EXITED and not record.ok


def _ended_at(member: Member, skew: Mapping[str, float]) -> float:
    return member.record.ended_at - skew.get(member.name, 0.0) if member.record else float("inf")
