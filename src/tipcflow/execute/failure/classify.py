"""Exit record and log diagnosis -> failure class."""

import signal

from tipcflow.domain import EndReason, ExitRecord, StoppedBy
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.failure.diagnosis import Telling

_BY_REASON = {
    EndReason.DEADLINE: FailureClass.TIMEOUT,
    EndReason.HANG: FailureClass.HANG,
    EndReason.LEASE_EXPIRED: FailureClass.NODE_LOST,
    EndReason.LOST: FailureClass.NODE_LOST,
    EndReason.BARRIER_TIMEOUT: FailureClass.NODE_UNREADY,
    EndReason.REFUSED: FailureClass.NODE_UNREADY,
}
# Initiators that end a job without a user who cancels the run and without a fault of the job's code.
STOPPED = {
    StoppedBy.NODE: FailureClass.NODE_LOST,
    StoppedBy.OPERATOR: FailureClass.INTERRUPTED,
    StoppedBy.CONTROLLER: FailureClass.INTERRUPTED,
    StoppedBy.BUDGET: FailureClass.BUDGET,
}
# Signals that a program does not send to itself; the others are crashes of the program.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}
# The runner's messages about a full disk.
_NO_ROOM = ("bytes free, the step needs", " is full")


def class_of(record: ExitRecord | None, told: Telling, late: str = "") -> FailureClass | None:
    """Return the failure class of one job or leg; None if it succeeded or was stopped.

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
        return STOPPED.get(record.stopped_by) if record.stopped_by else None
    if record.reason is EndReason.DEADLINE and late:
        return FailureClass.BUDGET
    if any(words in record.message for words in _NO_ROOM):
        return FailureClass.DISK
    if record.reason in _BY_REASON:
        return _BY_REASON[record.reason]
    # The kernel's OOM killer sends SIGKILL: a rank with another known end was not killed by it.
    if record.oom and (told.left is None or told.left.exit_code is None):
        return FailureClass.OOM_HOST
    if told.trouble is not None and not told.trouble.victim:
        return told.trouble.failure_class
    number = signal_of(record, told)
    if number and not told.victim:
        return FailureClass.KILLED if number in _FROM_OUTSIDE else FailureClass.CODE_ERROR
    if told.silent >= 0:
        # The rank exited without a message, or was still running: in both cases the others waited for it.
        left = told.left is not None or told.code > 0
        return FailureClass.HANG if told.waited and not left else FailureClass.CODE_ERROR
    if told.victim or record.victim:
        return FailureClass.COMMUNICATION
    return FailureClass.CODE_ERROR if record.exit_code else FailureClass.OUTPUT_MISSING


def signal_of(record: ExitRecord, told: Telling) -> int:
    """Return the signal that ended the job's process or the failing worker, 0 for none.

    Source: a shell exits with 128 + signal if its command was killed; Paddle's launcher with 256 - signal if its
    worker was killed, where 250 is the worker's own abort after the loss of a peer.
    """
    if record.reason is EndReason.SIGNALED:
        return record.signal or 0
    if told.left is not None and (told.left.signal or told.left.exit_code is not None):
        return told.left.signal or 0
    if told.silent >= 0:
        return -min(told.code, 0)  # the exit code belongs to the launcher, which ended the other workers
    if told.code < 0:
        return -told.code
    code = record.exit_code or 0
    if code in (128 + signal.SIGKILL, 256 - signal.SIGKILL):
        return int(signal.SIGKILL)
    if code in (128 + signal.SIGTERM, 256 - signal.SIGTERM):
        return int(signal.SIGTERM)
    return 0
