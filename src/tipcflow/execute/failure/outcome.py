"""Exit records and log diagnoses -> statuses, reasons, and the failure class with the failing node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tipcflow.domain import EndReason, ExitRecord, InfraError, Leg, Status
from tipcflow.domain.run.failure import REMEDIES, Failure, FailureClass
from tipcflow.execute.failure.classify import class_of, class_of_error
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.gpu_neighbors import class_of_message, taken_by
from tipcflow.execute.failure.missing import mark_missing_rank
from tipcflow.execute.failure.root_cause import ended_from_outside, find_root_cause, is_failed, was_stopped
from tipcflow.execute.failure.sentence import root_cause
from tipcflow.execute.failure.servers import FailedProcess, class_of_process, first_failed
from tipcflow.execute.job.member import Member
from tipcflow.parse import error_excerpt
from tipcflow.parse.failures.excerpt import last_error
from tipcflow.parse.failures.hang_evidence import behind, hardware, was_silent

_NOTHING = LogDiagnosis()
_UNREADY = FailureClass.NODE_UNREADY
# A rank without output for this long before its deadline counts as hung, seconds.
_STILL_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """The status of a step or leg. `failure` is None if it succeeded, was stopped or never started."""

    status: Status
    reason: str = ""
    failure: Failure | None = None


def status_of(record: ExitRecord, diagnosis: LogDiagnosis = _NOTHING, late: str = "") -> tuple[Status, str]:
    """Return (status, reason) of one job or leg.

    Args:
        late: message about the run's budget if it cut the deadline, else ''.
    """
    kind = class_of(record, diagnosis, late)
    reason = root_cause(record, diagnosis, kind, late)
    if kind is not None:
        return REMEDIES[kind].status, reason
    return (Status.CANCELLED if record.reason is EndReason.STOPPED else Status.PASS), reason


def reason_of(member: Member) -> str:
    """Return why a member has ended or is lost."""
    return member.lost if member.record is None else status_of(member.record)[1]


def unstarted_class(member: Member) -> FailureClass | None:
    """Return the class of the failure because of which a member did not start; None if it is unknown."""
    refused = member.record is not None and member.record.reason is EndReason.REFUSED
    return class_of(member.record, _NOTHING) if refused else member.lost_class


def failure_of(
    record: ExitRecord | None, diagnosis: LogDiagnosis, *, node: str, leg: str = "", late: str = ""
) -> Failure | None:
    """Return the failure of one job or leg; None if it succeeded or was stopped."""
    kind = class_of(record, diagnosis, late)
    if kind is None:
        return None
    rank = diagnosis.silent if diagnosis.silent >= 0 else diagnosis.rank
    message = diagnosis.trouble.log_line if diagnosis.trouble else ""
    return Failure(failure_class=kind, node=node, rank=rank, leg=leg, log_line=message)


def step_outcome(
    members: Sequence[Member],
    diagnoses: Mapping[str, LogDiagnosis],
    *,
    cancelled: bool,
    skew: Mapping[str, float] | None = None,
    late: str = "",
) -> Outcome:
    """Return the outcome of a step without legs; it names the failing node and the peers that failed as a
    consequence.

    Args:
        diagnoses: node name -> diagnosis of its logs.
        skew: node name -> clock offset ahead of the controller's clock, seconds.
        late: message about the run's budget if it cut the step's deadline, else ''.
    """
    # A job that ended before the stop request keeps its own status.
    ended = all(m.record is not None and m.record.reason is not EndReason.STOPPED for m in members)
    if cancelled and not ended:
        return Outcome(Status.CANCELLED, "stopped by a user")
    by_itself = (EndReason.EXITED, EndReason.SIGNALED)
    exited = [m.name for m in members if m.record is not None and m.record.reason in by_itself]
    diagnoses = mark_missing_rank(diagnoses, exited)
    named = find_root_cause(members, diagnoses, skew)
    if named is None:
        return Outcome(Status.PASS)
    others = tuple(m.name for m in members if m is not named and is_failed(m) and not m.lost)
    diagnosis = diagnoses.get(named.name, _NOTHING)
    if named.record is None:
        lost = Failure(failure_class=_lost_class(named), node=named.lost_by or named.name, followers=others)
        return Outcome(Status.INFRA_FAILURE, named.lost, lost)
    died = first_failed(named.record)
    if died is not None and (died.is_server or died.was_killed or was_stopped(named)):
        return _process_died(named.record, died, diagnosis, others)
    peers_ended = any(m.record is not None and not was_stopped(m) for m in members if m.name in others)
    unknown = named.record.stopped_by is None and not peers_ended
    if was_stopped(named) and not ended_from_outside(named) and not unknown:
        return _stayed_behind(named, diagnosis, others)
    status, reason = status_of(named.record, diagnosis, late)
    failure = failure_of(named.record, diagnosis, node=named.name, late=late)
    if failure is not None and failure.failure_class is FailureClass.HANG and diagnosis.silent < 0:
        pass  # its log ends with its stacks, which are part of the evidence
    elif diagnosis.silent >= 0 and diagnosis.trouble is not None:
        reason = f"{reason}; peers report: {diagnosis.trouble.log_line}"  # its own log has no message
    elif status is Status.FAILED:
        reason = _with_excerpt(reason, diagnosis)
    elif diagnosis.trouble is not None and diagnosis.trouble.log_line:
        reason = f"{reason}: {diagnosis.trouble.log_line}"
    if others:
        reason += f"; collateral failure on node {', '.join(others)}"
    return Outcome(status, reason, failure and failure.model_copy(update={"followers": others}))


def with_evidence(
    outcome: Outcome, evidence: Mapping[str, Mapping[str, Any]], files: Sequence[Path], *, root: Path
) -> Outcome:
    """Add evidence files to the outcome of a hung gang, and name the rank that is behind as the cause.

    No rank is named if the gang was only slow: running ranks are always up to an iteration apart.

    Args:
        evidence: node -> state that was recorded before the node was stopped.
        root: the run's folder.
    """
    failure = outcome.failure
    if failure is None or not evidence:
        return outcome
    shown = tuple(str(file.relative_to(root)) for file in files)
    failure = failure.model_copy(update={"evidence": shown})
    if failure.failure_class not in (FailureClass.HANG, FailureClass.TIMEOUT, FailureClass.BUDGET):
        return replace(outcome, failure=failure)
    stood = failure.failure_class is FailureClass.HANG or was_silent(evidence, _STILL_S)
    late, broken = behind(evidence) if stood else None, hardware(evidence)
    reason = "; ".join(filter(None, (late.why if late else "", outcome.reason, broken)))
    if late is None:
        return replace(outcome, reason=reason, failure=failure)
    # A rank without progress while others wait for it hangs, even if the budget ended the wait.
    budget = failure.failure_class is FailureClass.BUDGET
    kind, status = (FailureClass.HANG, Status.FAILED) if budget else (failure.failure_class, outcome.status)
    failure = failure.model_copy(update={"node": late.node, "rank": late.rank, "failure_class": kind})
    return Outcome(status, reason, failure)


def with_short_rank(outcome: Outcome, losses: Mapping[tuple[str, int], int]) -> Outcome:
    """Name the rank that left early as the cause of an output that was not written.

    Args:
        losses: (node, rank) -> number of training losses in its log.
    """
    failure = outcome.failure
    if failure is None or failure.failure_class is not FailureClass.OUTPUT_MISSING or not losses:
        return outcome
    node, rank = short = min(losses, key=lambda place: (losses[place], place))
    logged, most = losses[short], max(losses.values())
    if logged == most:
        return outcome
    reason = (
        f"rank {rank} on node {node} logged {logged} of {most} losses that another rank logged; {outcome.reason}"
    )
    return Outcome(outcome.status, reason, failure.model_copy(update={"node": node, "rank": rank}))


def _process_died(
    record: ExitRecord, died: FailedProcess, diagnosis: LogDiagnosis, others: tuple[str, ...]
) -> Outcome:
    """A training with parameter servers failed because one of its processes died."""
    kind = class_of_process(died, record, diagnosis)
    text = diagnosis.servers.get(died.end.rank, "") if died.is_server else diagnosis.text
    reason = f"{died.name} on node {record.node} {died.how}{taken_by(kind, record, text, died.rank)}"
    if kind is not FailureClass.KILLED:
        reason = _with_excerpt(reason, replace(diagnosis, text=text))
    if others:
        reason += f"; collateral failure on node {', '.join(others)}"
    return Outcome(
        REMEDIES[kind].status,
        reason,
        Failure(failure_class=kind, node=record.node, rank=died.rank, followers=others),
    )


def _stayed_behind(member: Member, diagnosis: LogDiagnosis, others: tuple[str, ...]) -> Outcome:
    """A member that was running after its peers had exited: a hang, unless its log names another cause."""
    own = diagnosis.trouble is not None and not diagnosis.trouble.is_collateral
    kind = FailureClass.HANG
    if own and diagnosis.trouble:
        kind = class_of_message(diagnosis.trouble, member.record, diagnosis.text, diagnosis.rank)
    failure = Failure(
        failure_class=kind,
        node=member.name,
        rank=diagnosis.rank if own else diagnosis.silent,
        log_line=diagnosis.trouble.log_line if own and diagnosis.trouble else "",
        followers=others,
    )
    place = f"on node {member.name}{taken_by(kind, member.record, diagnosis.text, diagnosis.rank)}"
    reason = f"{REMEDIES[kind].means} {place}; its peers on node {', '.join(others)} exited first"
    return Outcome(REMEDIES[kind].status, _with_excerpt(reason, diagnosis) if own else reason, failure)


def leg_outcome(
    leg: Leg, member: Member, diagnosis: LogDiagnosis, *, cancelled: bool, late: str = "", garbled: str = ""
) -> Outcome:
    """Return the outcome of one leg of an inference step.

    Args:
        garbled: message about an invalid line that may be the leg's exit record, else ''.
    """
    if leg.not_run:
        return Outcome(Status.NOT_RUN, leg.not_run)
    record = member.legs.get(leg.id)
    if record is not None and not (cancelled and record.reason is EndReason.STOPPED):
        status, reason = status_of(record, diagnosis, late)
        if status is Status.FAILED:
            reason = _with_excerpt(reason, diagnosis)
        return Outcome(status, reason, failure_of(record, diagnosis, node=member.name, leg=leg.id, late=late))
    if cancelled:
        return Outcome(Status.CANCELLED, "stopped by a user")
    if member.record is not None and member.record.reason is not EndReason.EXITED:
        return Outcome(Status.BLOCKED, f"not started: {member.record.message or member.record.reason.value}")
    if garbled:
        return Outcome(Status.INFRA_FAILURE, f"{garbled}; the leg has no exit record")
    return Outcome(Status.BLOCKED, member.lost or "not started")


def unready(members: Sequence[Member], trouble: InfraError) -> Outcome:
    """Return the outcome of an attempt that never started because a node could not start its part."""
    refused = next((m for m in members if is_failed(m) and m.record is not None and not was_stopped(m)), None)
    failure = failure_of(refused.record, _NOTHING, node=refused.name) if refused else None
    node = trouble.node or (refused.name if refused else "")
    kind = class_of_error(trouble)
    if kind is not None and (failure is None or failure.failure_class is _UNREADY):
        failure = Failure(failure_class=kind, node=node)
    return Outcome(Status.INFRA_FAILURE, str(trouble), failure or Failure(failure_class=_UNREADY, node=node))


def before_the_first_step(error: InfraError) -> Failure | None:
    """Return the failure of a run that a node ended before its first step; None if no node caused it."""
    if not error.node:
        return None
    return Failure(failure_class=class_of_error(error) or _UNREADY, node=error.node)


def _lost_class(member: Member) -> FailureClass:
    return FailureClass.EVIDENCE_LOST if member.damaged else FailureClass.NODE_LOST


def whole_job(member: Member, *, cancelled: bool, late: str = "") -> Outcome:
    """Return how the job of an inference step ended as a whole."""
    if cancelled:
        return Outcome(Status.CANCELLED, "stopped by a user")
    record = member.record
    if record is None:
        lost = Failure(failure_class=_lost_class(member), node=member.lost_by or member.name)
        return Outcome(Status.INFRA_FAILURE, member.lost, lost)
    if record.reason in (EndReason.EXITED, EndReason.SIGNALED):
        return Outcome(Status.PASS)
    return Outcome(*status_of(record, late=late), failure_of(record, _NOTHING, node=member.name, late=late))


def stored_leg_status(status: Status) -> Status:
    """Return the status to store for a leg. A leg ended by a user or a node has no result of its own, so it is
    `blocked`; its step has the informative status."""
    return Status.BLOCKED if status in (Status.CANCELLED, Status.INFRA_FAILURE) else status


def legs_outcome(legs: Sequence[Outcome], whole: Outcome) -> Outcome:
    """Return the outcome of an inference step from the outcomes of its legs and of its job."""
    ran = [leg for leg in legs if leg.status is not Status.NOT_RUN]
    if not ran:
        return Outcome(Status.NOT_RUN, legs[0].reason if legs else "no legs")
    worst = max(ran, key=lambda leg: leg.status.severity)
    first = next((leg.failure for leg in legs if leg.status is worst.status and leg.failure), None)
    if whole.status in (Status.INFRA_FAILURE, Status.CANCELLED):
        return replace(whole, failure=whole.failure or (first if whole.status is Status.INFRA_FAILURE else None))
    if worst.status is Status.PASS:
        return Outcome(Status.PASS)
    count = sum(leg.status is worst.status for leg in ran)
    reason = next(leg.reason for leg in legs if leg.status is worst.status)
    summary = f"{count} of {len(ran)} legs {worst.status.value.replace('_', ' ')}: {reason}"
    return Outcome(worst.status, summary, whole.failure or first)


def _with_excerpt(reason: str, diagnosis: LogDiagnosis) -> str:
    """Append the end of a log: first the error itself, because reasons are shortened, then the lines above it."""
    lines = error_excerpt(diagnosis.text).splitlines()
    message = diagnosis.trouble.log_line if diagnosis.trouble is not None else ""
    error = next((line for line in reversed(lines) if message and line.strip().startswith(message)), None)
    error = error or last_error(lines)
    if error is not None:
        lines.remove(error)
        lines.insert(0, error.strip())
    return f"{reason}: " + "\n".join(lines) if lines else reason
