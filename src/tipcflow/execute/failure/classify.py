"""Exit record and log diagnosis -> failure class."""

import re
import signal

from tipcflow.domain import EndReason, ExitRecord, InfraError, StoppedBy
from tipcflow.domain.run.failure import OF_NEED, FailureClass
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.gpu_neighbors import class_of_message
from tipcflow.parse.failures.failure import find_failure

_BY_REASON = {
    EndReason.DEADLINE: FailureClass.TIMEOUT,
    EndReason.HANG: FailureClass.HANG,
    EndReason.LEASE_EXPIRED: FailureClass.NODE_LOST,
    EndReason.LOST: FailureClass.NODE_LOST,
    EndReason.BARRIER_TIMEOUT: FailureClass.NODE_UNREADY,
}
# Errors of the operating system without space, inodes or quota, or with a disk that had errors or is read-only.
_DISK_ERRORS = ("ENOSPC", "EDQUOT", "EROFS", "EIO")
# Initiators that end a job without a user who cancels the run and without a fault of the job's code.
STOPPED = {
    StoppedBy.NODE: FailureClass.NODE_LOST,
    StoppedBy.OPERATOR: FailureClass.INTERRUPTED,
    StoppedBy.CONTROLLER: FailureClass.INTERRUPTED,
    StoppedBy.BUDGET: FailureClass.BUDGET,
}
# Signals that a program does not send to itself; the others are crashes of the program.
FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}
# Words of shells, launchers and libraries about a process that got SIGKILL.
_KILLED = re.compile(r"\bKilled\b|SIGKILL|\bsignal:? 9\b", re.IGNORECASE)


def class_of(record: ExitRecord | None, diagnosis: LogDiagnosis, late: str = "") -> FailureClass | None:
    """Return the failure class of one job or leg; None if it succeeded or was stopped by a user or
    because of a peer.

    Observations of the kernel and the runner precede log messages; causes precede consequences.

    Args:
        record: None for a lost job.
        late: message about the run's budget if it cut the deadline, else ''.
    """
    if record is None:
        return FailureClass.NODE_LOST
    if record.ok:
        return None
    if record.reason is EndReason.STOPPED:
        return _class_of_stop(record)
    if record.reason is EndReason.DEADLINE and late:
        return FailureClass.BUDGET
    if record.disk_full or record.reason is EndReason.REFUSED:
        return _class_of_refusal(record)
    if record.reason in _BY_REASON:
        return _BY_REASON[record.reason]
    # The kernel's OOM killer sends SIGKILL: a rank with another known end was not killed by it.
    known_end = diagnosis.left is not None and diagnosis.left.exit_code is not None
    if record.oom and not known_end and _may_be_oom(record, diagnosis):
        return FailureClass.OOM_HOST
    stated = _stated(record, diagnosis)
    if stated is not None:
        return stated
    number = signal_of(record, diagnosis)
    if number and not diagnosis.is_collateral:
        return FailureClass.KILLED if number in FROM_OUTSIDE else FailureClass.CODE_ERROR
    if diagnosis.silent >= 0:
        # The rank exited without a message, or was still running: in both cases the others waited for it.
        left = diagnosis.left is not None or diagnosis.code > 0
        return FailureClass.HANG if diagnosis.waited and not left else FailureClass.CODE_ERROR
    if diagnosis.is_collateral or record.is_collateral:
        return FailureClass.COMMUNICATION
    return FailureClass.CODE_ERROR if record.exit_code else FailureClass.OUTPUT_MISSING


def _stated(record: ExitRecord, diagnosis: LogDiagnosis) -> FailureClass | None:
    """Return the class that the runner, as the command itself, states or else the log; None if neither does."""
    if record.unmet is not None:
        return OF_NEED[record.unmet]
    trouble = diagnosis.trouble
    if trouble is None or trouble.is_collateral:
        return None
    return class_of_message(trouble, record, diagnosis.text, diagnosis.rank)


def _class_of_stop(record: ExitRecord) -> FailureClass | None:
    if record.stopped_by is None:
        # On a full disk the request to stop cannot be stored with its initiator.
        return FailureClass.DISK if record.disk_full else FailureClass.INTERRUPTED
    return STOPPED.get(record.stopped_by)


def _may_be_oom(record: ExitRecord, diagnosis: LogDiagnosis) -> bool:
    """Whether the out-of-memory killer may have ended a process of the job.

    Inside a container, the process that the kernel killed is unknown: it may be any process of the machine. A
    program that exited by itself, with a code and no message about a killed process or lost peer, was not killed.
    """
    return (
        record.oom_named
        or signal_of(record, diagnosis) == signal.SIGKILL
        or diagnosis.silent >= 0
        or diagnosis.is_collateral
        or record.is_collateral
        or not diagnosis.text.strip()
        or _KILLED.search(diagnosis.text) is not None
    )


def class_of_error(error: InfraError) -> FailureClass | None:
    """Return the failure class of a node that could not start its part; None if the error does not tell.

    The class comes with the error, or from what a program on the node printed.
    """
    if error.failure_class is not None:
        return error.failure_class
    failure = find_failure(error.output)
    known = failure is not None and failure.failure_class in (FailureClass.DISK, FailureClass.ENVIRONMENT)
    return failure.failure_class if failure is not None and known else None


def _class_of_refusal(record: ExitRecord) -> FailureClass:
    """Return the failure class of a job that was refused, or that ended on a full disk.

    A runner without space (or inodes) to store anything cannot measure the disk, but it receives the error of the
    operating system. Runners before this field sent that error in their message alone.
    """
    if record.disk_full or record.errno in _DISK_ERRORS:
        return FailureClass.DISK
    if record.errno is None:
        failure = find_failure(record.message)
        if failure is not None and failure.failure_class is FailureClass.DISK:
            return FailureClass.DISK
    return FailureClass.ENVIRONMENT if record.interpreter else FailureClass.NODE_UNREADY


def signal_of(record: ExitRecord, diagnosis: LogDiagnosis) -> int:
    """Return the signal that ended the job's process or the failing worker, 0 for none.

    Source: a shell exits with 128 + signal if its command was killed; Paddle's launcher with 256 - signal if its
    worker was killed, where 250 is the worker's own abort after the loss of a peer.
    """
    if record.reason is EndReason.SIGNALED:
        return record.signal or 0
    if diagnosis.left is not None and (diagnosis.left.signal or diagnosis.left.exit_code is not None):
        return diagnosis.left.signal or 0
    if diagnosis.silent >= 0:
        return -min(diagnosis.code, 0)  # the exit code belongs to the launcher, which ended the other workers
    if diagnosis.code < 0:
        return -diagnosis.code
    code = record.exit_code or 0
    if code in (128 + signal.SIGKILL, 256 - signal.SIGKILL):
        return int(signal.SIGKILL)
    if code in (128 + signal.SIGTERM, 256 - signal.SIGTERM):
        return int(signal.SIGTERM)
    return 0
