"""Failure classes of steps: status, meaning, advice and retries (docs/reference/failures.md)."""

from enum import StrEnum
from typing import NamedTuple

from pydantic import AliasChoices, Field

from tipcflow.domain.base import Record
from tipcflow.domain.masking import Masked
from tipcflow.domain.run.exit_record import UnmetNeed
from tipcflow.domain.status import Status


class FailureClass(StrEnum):
    """Class of a failure, named after its cause."""

    OOM_GPU = "oom_gpu"
    GPU_TAKEN = "gpu_taken"
    OOM_HOST = "oom_host"
    COMMUNICATION = "communication"
    HANG = "hang"
    DATA_MISSING = "data_missing"
    DOWNLOAD = "download"
    ENVIRONMENT = "environment"
    DISK = "disk"
    KILLED = "killed"
    NODE_LOST = "node_lost"
    NODE_UNREADY = "node_unready"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    CODE_ERROR = "code_error"
    OUTPUT_MISSING = "output_missing"
    EVIDENCE_LOST = "evidence_lost"


OF_NEED = {
    UnmetNeed.DOWNLOAD: FailureClass.DOWNLOAD,
    UnmetNeed.ENVIRONMENT: FailureClass.ENVIRONMENT,
    UnmetNeed.DATA: FailureClass.DATA_MISSING,
    UnmetNeed.DISK: FailureClass.DISK,
    UnmetNeed.NODE: FailureClass.NODE_UNREADY,
}
"""What the node runner could not provide -> class."""


class Remedy(NamedTuple):
    """Consequences of a failure class.

    Attributes:
        status: status of the step: `failed` if the model or its code is the cause, or if the cause is unclear;
            otherwise `infra_failure`.
        means: what happened, in a few words.
        advice: what to do.
        retries: number of retries, unless the policy sets another one.
    """

    status: Status
    means: str
    advice: str
    retries: int


_FAILED, _INFRA = Status.FAILED, Status.INFRA_FAILURE

REMEDIES = {
    FailureClass.OOM_GPU: Remedy(
        _FAILED,
        "GPU out of memory",
        "Lower the batch size, and check for other users of the GPU with nvidia-smi. The exit record has the peak "
        "memory per rank. A retry does not help.",
        0,
    ),
    FailureClass.GPU_TAKEN: Remedy(
        _INFRA,
        "other processes held the GPU's memory",
        "The model is not the cause. End the named processes, or keep them off the node's GPUs, then run again. A "
        "retry does not help before that.",
        0,
    ),
    FailureClass.OOM_HOST: Remedy(
        _FAILED,
        "node out of memory",
        "Lower the batch size or the number of data-loading processes; enlarge /dev/shm if the error names it. "
        "The exit record has the peak memory. A retry does not help.",
        0,
    ),
    FailureClass.COMMUNICATION: Remedy(
        _INFRA,
        "the processes could not communicate",
        "Check that the nodes reach each other on the training's ports (`tipcflow doctor --cluster`), and run "
        "again with --diagnose, which enables the communication library's log. A retry often helps.",
        1,
    ),
    FailureClass.HANG: Remedy(
        _FAILED,
        "no progress",
        "Read the stacks of the rank that is behind in the evidence of each node. Ranks in different collectives "
        "are deadlocked. A retry rarely helps.",
        0,
    ),
    FailureClass.DATA_MISSING: Remedy(
        _FAILED,
        "a required file is missing",
        "Check that `prepare` fetched the file and that the path in the params file is correct on every node. A "
        "retry does not help.",
        0,
    ),
    FailureClass.DOWNLOAD: Remedy(
        _INFRA,
        "a download failed",
        "Check that the node reaches the address, or copy the file to the node beforehand. A retry often helps.",
        1,
    ),
    FailureClass.ENVIRONMENT: Remedy(
        _INFRA,
        "the node's software does not meet the model's requirements",
        "Install the named package in the node's environment (`python` in the cluster file). A retry does not "
        "help.",
        0,
    ),
    FailureClass.DISK: Remedy(
        _INFRA,
        "the disk is full",
        "Free disk space on the node (`tipcflow nodes`; remove old runs), or set another `workspace`. A retry "
        "does not help before that.",
        0,
    ),
    FailureClass.KILLED: Remedy(
        _INFRA,
        "the process was killed from outside the model",
        "Check for other users of the node: a program does not send itself this signal. If it happens again at "
        "the same point, suspect a memory limit that the kernel did not log. A retry often helps.",
        1,
    ),
    FailureClass.NODE_LOST: Remedy(
        _INFRA,
        "the node was lost or shut down",
        "Check the node and its network. Its jobs end by themselves without a controller. A retry helps once the "
        "node is reachable and empty.",
        1,
    ),
    FailureClass.NODE_UNREADY: Remedy(
        _INFRA,
        "the node could not start its part",
        "Read the reason, which the node reported; `tipcflow doctor --cluster` checks everything. No training "
        "started.",
        0,
    ),
    FailureClass.INTERRUPTED: Remedy(
        _INFRA,
        "an operator or a controller ended the job",
        "The model is not the cause. Contact the operator, then run again.",
        0,
    ),
    FailureClass.TIMEOUT: Remedy(
        _FAILED,
        "the deadline was exceeded",
        "Compare with the times of earlier runs. If the step is just long, raise step_deadline_minutes or "
        "budget_minutes in the policy. A retry takes as long.",
        0,
    ),
    FailureClass.BUDGET: Remedy(
        _INFRA,
        "the run's budget is used up",
        "Compare the steps' times with those of earlier runs. If they are as usual, raise budget_minutes in the "
        "policy or in the suite file. A retry takes as long.",
        0,
    ),
    FailureClass.CODE_ERROR: Remedy(
        _FAILED,
        "the model's code exited with an error",
        "Read the error and the log of that rank. A retry does not help.",
        0,
    ),
    FailureClass.OUTPUT_MISSING: Remedy(
        _FAILED,
        "exit code 0, but a required output is missing",
        "Compare the path with the params file; an old file at that path does not count. A retry does not help.",
        0,
    ),
    FailureClass.EVIDENCE_LOST: Remedy(
        _INFRA,
        "logs or records of the job are lost, so its end proves nothing",
        "Read the reason, which names the file. A log must be a regular file that the node's user can read and "
        "that no other program replaces; raise TIPCFLOW_LOG_LIMIT_MB if it is too large.",
        0,
    ),
}


class Failure(Record):
    """Failure of an attempt of a step. Steps stopped by a user have none.

    Attributes:
        node: the node that failed first; '' if unknown.
        rank: the global rank that failed first, -1 if unknown.
        leg: the first inference leg that failed.
        log_line: the log line that determined the class; '' if the exit record did.
        followers: nodes with collateral failures.
        evidence: files in the run's folder, collected from the nodes before they were stopped.
        cause: step whose log names the cause; '' for the step itself. Such a failure is not retried.
        again: whether the step was retried.
        why_not: why the step was not retried although the policy allows retries; otherwise ''.
    """

    schema_version: int = 1
    failure_class: FailureClass
    node: str = ""
    rank: int = -1
    leg: str = ""
    log_line: Masked = Field(default="", validation_alias=AliasChoices("log_line", "said"))
    followers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    cause: str = ""
    again: bool = False
    why_not: Masked = ""

    @property
    def remedy(self) -> Remedy:
        """The consequences of its class."""
        return REMEDIES[self.failure_class]

    @property
    def root_cause(self) -> str:
        """The root cause as text: `node b, rank 3`; '' if unknown."""
        rank = f"rank {self.rank}" if self.rank >= 0 else ""
        return ", ".join(filter(None, (f"node {self.node}" if self.node else "", rank, self.leg)))

    @property
    def headline(self) -> str:
        """Class, meaning and root cause in one line."""
        who = f"; root cause: {self.root_cause}" if self.root_cause else ""
        return f"{self.failure_class.value} ({self.remedy.means}){who}"

    @property
    def then(self) -> str:
        """`retried`, or why it was not, or nothing."""
        return "retried" if self.again else f"not retried: {self.why_not}" if self.why_not else ""


class Suspicion(Record):
    """A failure in the log of a preparation that ended with 0: the cause, if a later step misses a file.

    Attributes:
        log_line: the log line.
    """

    schema_version: int = 1
    failure_class: FailureClass
    step: str
    node: str
    log_line: Masked = Field(default="", validation_alias=AliasChoices("log_line", "said"))
