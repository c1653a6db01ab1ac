"""Exit record and failure class -> the first sentence of a status reason."""

from tipcflow.domain import EndReason, ExitRecord, StoppedBy
from tipcflow.domain.run.failure import REMEDIES, FailureClass
from tipcflow.execute.failure.classify import signal_of
from tipcflow.execute.failure.diagnosis import Telling

_BY_THE_RUNNER = (
    EndReason.DEADLINE,
    EndReason.HANG,
    EndReason.LEASE_EXPIRED,
    EndReason.BARRIER_TIMEOUT,
    EndReason.REFUSED,
    EndReason.LOST,
)


def root_cause(record: ExitRecord, told: Telling, kind: FailureClass | None, late: str = "") -> str:
    """Return what failed, where, with the known numbers; '' for a job that succeeded.

    Args:
        kind: the failure class; None if the job succeeded or was cancelled.
        late: message about the run's budget if it cut the deadline, else ''.
    """
    if record.reason is EndReason.STOPPED:
        return _stopped(record)
    if record.reason in _BY_THE_RUNNER:
        words = record.message or record.reason.value.replace("_", " ")
        first = f"{late}: " if kind is FailureClass.BUDGET else ""
        return f"{first}{words} on node {record.node}"
    if kind is None:
        return ""
    rank = told.silent if told.silent >= 0 else told.rank
    where = f"on node {record.node}" + (f", rank {rank}" if rank >= 0 else "")
    if kind is FailureClass.OUTPUT_MISSING:
        return f"exited with 0 but {_unwritten(record)} on node {record.node}"
    if kind is FailureClass.CODE_ERROR and told.silent >= 0:
        where = f"rank {told.silent} on node {record.node}"
        return f"{where} exited without a message{_code(told)} while its peers were running"
    if kind is FailureClass.HANG:
        return f"{REMEDIES[kind].means} {where}: its peers timed out waiting for it"
    if kind is FailureClass.CODE_ERROR:
        return f"{ended(record, told)} {where}"
    return f"{REMEDIES[kind].means} {where} ({ended(record, told)})"


def ended(record: ExitRecord, told: Telling) -> str:
    """Return how a job's process ended, and the signal of the failing worker."""
    if record.reason is EndReason.SIGNALED:
        return f"ended by signal {record.signal}"
    number = signal_of(record, told)
    return f"exit code {record.exit_code}" + (f", a worker was ended by signal {number}" if number else "")


def _code(told: Telling) -> str:
    if told.left is not None and told.left.signal:
        return f" (signal {told.left.signal})"
    code = told.left.exit_code if told.left is not None else told.code or None
    return "" if code is None else f" (exit code {code})"


def _stopped(record: ExitRecord) -> str:
    evidence = f" ({record.message})" if record.message else ""
    if record.stopped_by is StoppedBy.NODE:
        return f"node {record.node} shut down{evidence}"
    if record.stopped_by is StoppedBy.OPERATOR:
        return f"an operator ended the job on node {record.node}{evidence}"
    if record.stopped_by is StoppedBy.CONTROLLER:
        return f"the controller ended the job on node {record.node}{evidence}"
    return f"{record.message or 'stopped'} on node {record.node}"


def _unwritten(record: ExitRecord) -> str:
    missing = [output.path for output in record.outputs if not output.exists]
    stale = [output.path for output in record.outputs if output.exists and not output.fresh]
    what = [f"did not write {', '.join(missing)}"] if missing else []
    what += [f"did not update the older {', '.join(stale)}"] if stale else []
    return " and ".join(what)
