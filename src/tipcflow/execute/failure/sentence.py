"""Exit record and failure class -> the first sentence of a status reason."""

from tipcflow.domain import EndReason, ExitRecord, StoppedBy
from tipcflow.domain.run.failure import REMEDIES, FailureClass
from tipcflow.execute.failure.classify import signal_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.gpu_neighbors import taken_by

_BY_THE_RUNNER = (
    EndReason.DEADLINE,
    EndReason.HANG,
    EndReason.LEASE_EXPIRED,
    EndReason.BARRIER_TIMEOUT,
    EndReason.REFUSED,
    EndReason.LOST,
)


def root_cause(record: ExitRecord, diagnosis: LogDiagnosis, kind: FailureClass | None, late: str = "") -> str:
    """Return what failed, where, with the known numbers; '' for a job that succeeded.

    Args:
        kind: the failure class; None if the job succeeded or was cancelled.
        late: message about the run's budget if it cut the deadline, else ''.
    """
    if record.reason is EndReason.STOPPED:
        return _stopped(record)
    if record.reason in _BY_THE_RUNNER:
        problem = record.message or record.reason.value.replace("_", " ")
        first = f"{late}: " if kind is FailureClass.BUDGET else ""
        return f"{first}{problem} on node {record.node}"
    if kind is None:
        return ""
    rank = diagnosis.silent if diagnosis.silent >= 0 else diagnosis.rank
    where = f"on node {record.node}" + (f", rank {rank}" if rank >= 0 else "")
    if kind is FailureClass.OUTPUT_MISSING:
        return f"exited with 0 but {_unwritten(record)} on node {record.node}"
    if kind is FailureClass.CODE_ERROR and diagnosis.silent >= 0:
        where = f"rank {diagnosis.silent} on node {record.node}"
        return f"{where} exited without a message{_code(diagnosis)} while its peers were running"
    if kind is FailureClass.HANG:
        return f"{REMEDIES[kind].means} {where}: peers timed out waiting for this rank"
    if kind is FailureClass.CODE_ERROR:
        return f"{process_end(record, diagnosis)} {where}"
    others = taken_by(kind, record, diagnosis.text, diagnosis.rank)
    return f"{REMEDIES[kind].means} {where}{others} ({process_end(record, diagnosis)})"


def process_end(record: ExitRecord, diagnosis: LogDiagnosis) -> str:
    """Return how a job's process ended, and the signal of the failing worker."""
    if record.reason is EndReason.SIGNALED:
        return f"ended by signal {record.signal}"
    number = signal_of(record, diagnosis)
    return f"exit code {record.exit_code}" + (f", a worker was ended by signal {number}" if number else "")


def _code(diagnosis: LogDiagnosis) -> str:
    if diagnosis.left is not None and diagnosis.left.signal:
        return f" (signal {diagnosis.left.signal})"
    code = diagnosis.left.exit_code if diagnosis.left is not None else diagnosis.code or None
    return "" if code is None else f" (exit code {code})"


def _stopped(record: ExitRecord) -> str:
    evidence = f" ({record.message})" if record.message else ""
    if record.stopped_by is StoppedBy.NODE:
        return f"node {record.node} shut down{evidence}"
    if record.stopped_by is StoppedBy.OPERATOR:
        return f"an operator ended the job on node {record.node}{evidence}"
    if record.stopped_by is StoppedBy.CONTROLLER:
        return f"the controller ended the job on node {record.node}{evidence}"
    if record.stopped_by is None:
        disk = "the disk is full and " if record.disk_full else ""
        return f"{disk}the job was stopped on node {record.node} by an unknown initiator{evidence}"
    return f"{record.message or 'stopped'} on node {record.node}"


def _unwritten(record: ExitRecord) -> str:
    missing = [output.path for output in record.outputs if not output.exists]
    stale = [output.path for output in record.outputs if output.exists and not output.fresh]
    what = [f"did not write {', '.join(missing)}"] if missing else []
    what += [f"did not update the older {', '.join(stale)}"] if stale else []
    return " and ".join(what)
