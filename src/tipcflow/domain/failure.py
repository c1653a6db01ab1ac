"""What kind of thing went wrong with a step, whose fault it is, and what to do (docs/reference/failures.md)."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from tipcflow.domain.attempt import Attempt
from tipcflow.domain.base import Record
from tipcflow.domain.masking import Masked
from tipcflow.domain.status import Status


class FailureClass(StrEnum):
    """What went wrong, in the words in which a person would look for the remedy."""

    OOM_GPU = "oom_gpu"
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


class Remedy(NamedTuple):
    """What follows from a class.

    Attributes:
        status: what is said of the step: `failed` is the model's or its code's fault, and what is in doubt is so
            too; `infra_failure` is not.
        means: what happened, in a few words.
        advice: what to do, in plain language.
        retries: how often it is worth another attempt, where a policy says nothing else.
    """

    status: Status
    means: str
    advice: str
    retries: int


_FAILED, _INFRA = Status.FAILED, Status.INFRA_FAILURE

REMEDIES = {
    FailureClass.OOM_GPU: Remedy(
        _FAILED,
        "the GPU's memory is used up",
        "Lower the batch size, or look with nvidia-smi who else uses that GPU; the peak per rank stands in the "
        "exit record. Another attempt ends alike.",
        0,
    ),
    FailureClass.OOM_HOST: Remedy(
        _FAILED,
        "the node's memory is used up",
        "Lower the batch size or the number of data-loading processes, enlarge /dev/shm where it is named, and "
        "look at the peak memory in the exit record. Another attempt ends alike.",
        0,
    ),
    FailureClass.COMMUNICATION: Remedy(
        _INFRA,
        "the processes could not talk to each other",
        "Look whether the nodes reach each other on the training's ports (`tipcflow doctor --cluster`), and run "
        "it again with --diagnose, which turns on the communication library's own log. Another attempt often "
        "helps.",
        1,
    ),
    FailureClass.HANG: Remedy(
        _FAILED,
        "it stopped making progress",
        "Read the stacks of the rank that is behind in the evidence of each node: processes that wait for "
        "different things wait for ever. Another attempt rarely helps.",
        0,
    ),
    FailureClass.DATA_MISSING: Remedy(
        _FAILED,
        "a file that it needs is not there",
        "Look whether `prepare` fetched it, and whether the path in the params file is right on every node. "
        "Another attempt does not help.",
        0,
    ),
    FailureClass.DOWNLOAD: Remedy(
        _INFRA,
        "something could not be downloaded",
        "Look whether the node reaches that address, or put the file there beforehand. Another attempt often "
        "helps.",
        1,
    ),
    FailureClass.ENVIRONMENT: Remedy(
        _INFRA,
        "the node's software is not what the model needs",
        "Install what is named into the environment that the cluster file gives for that node (`python`). Another "
        "attempt does not help.",
        0,
    ),
    FailureClass.DISK: Remedy(
        _INFRA,
        "the disk is full",
        "Free space on that node (`tipcflow nodes`, then remove old runs), or give it another `workspace`. "
        "Another attempt does not help before that.",
        0,
    ),
    FailureClass.KILLED: Remedy(
        _INFRA,
        "something outside the model killed its process",
        "Ask who was on that node: a program does not send itself this signal. When it happens at the same place "
        "again, suspect a memory limit that the kernel did not tell of. Another attempt often helps.",
        1,
    ),
    FailureClass.NODE_LOST: Remedy(
        _INFRA,
        "the node was lost or shut down",
        "Look at the node and its network; what ran there ends by itself when nobody asks for it. Another attempt "
        "helps once the node answers and was found empty.",
        1,
    ),
    FailureClass.NODE_UNREADY: Remedy(
        _INFRA,
        "the node could not start its part",
        "The reason is the node's own words; `tipcflow doctor --cluster` looks at all of it. Nothing was trained.",
        0,
    ),
    FailureClass.INTERRUPTED: Remedy(
        _INFRA,
        "an operator or a controller ended the job",
        "Nothing is known against the model. Run it again when whoever ended it agrees.",
        0,
    ),
    FailureClass.TIMEOUT: Remedy(
        _FAILED,
        "it took longer than it may",
        "Compare with the times of earlier runs; when it is only long, raise step_deadline_minutes or "
        "budget_minutes in the policy. Another attempt takes as long.",
        0,
    ),
    FailureClass.BUDGET: Remedy(
        _INFRA,
        "the run's budget is used up",
        "Compare the times of the steps with those of earlier runs; raise budget_minutes in the policy or in the "
        "suite file when they are as always. Another attempt takes as long.",
        0,
    ),
    FailureClass.CODE_ERROR: Remedy(
        _FAILED,
        "the model's code ended with an error",
        "Read the error and the log of that rank. Another attempt ends alike.",
        0,
    ),
    FailureClass.OUTPUT_MISSING: Remedy(
        _FAILED,
        "it ended well and did not write what it had to",
        "Compare the path with the one in the params file; an old file in that place does not count. Another "
        "attempt ends alike.",
        0,
    ),
}


class Failure(Record):
    """Why an attempt of a step did not end well. What a person stopped has none.

    Attributes:
        node: whose part went wrong first; '' when no node can be blamed.
        rank: the training process over all nodes that is to blame, -1 when none is known.
        leg: the first inference combination that went wrong.
        said: the line of a log that the class was told by; '' when the exit record alone tells it.
        followers: nodes that ended badly only because that one did.
        evidence: files in the run's folder with what the nodes looked like before they were stopped.
        again: whether the step was tried again because of it.
        why_not: why not, where the policy would have it tried again; '' where it would not.
    """

    schema_version: int = 1
    failure_class: FailureClass
    node: str = ""
    rank: int = -1
    leg: str = ""
    said: Masked = ""
    followers: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    again: bool = False
    why_not: Masked = ""

    @property
    def remedy(self) -> Remedy:
        """What follows from its class."""
        return REMEDIES[self.failure_class]

    @property
    def culprit(self) -> str:
        """Who is to blame, in words: `node b, rank 3`; '' when nobody is known."""
        rank = f"rank {self.rank}" if self.rank >= 0 else ""
        return ", ".join(filter(None, (f"node {self.node}" if self.node else "", rank, self.leg)))

    @property
    def headline(self) -> str:
        """Class, meaning and culprit in one line."""
        who = f"; culprit: {self.culprit}" if self.culprit else ""
        return f"{self.failure_class.value} ({self.remedy.means}){who}"

    @property
    def then(self) -> str:
        """What was done about it: `tried again`, why it was not, or nothing."""
        return "tried again" if self.again else f"not tried again: {self.why_not}" if self.why_not else ""


# The document of a run that holds its attempts' failures.
FAILURES = "failures"


def failure_key(step: str, attempt: int) -> str:
    """Under which name the failure of an attempt is kept in that document."""
    return f"{step}~{attempt}"


# Under which name the failure of a run is kept that ended before its first step.
BEFORE = "before"


def failure_before(kept: Mapping[str, Any] | None) -> Failure | None:
    """Why the run ended before its first step; None when it did not, or when no node is to blame."""
    told = (kept or {}).get(BEFORE)
    return Failure.model_validate(told) if told else None


def failures_of(kept: Mapping[str, Any] | None, attempts: Iterable[Attempt]) -> dict[tuple[str, int], Failure]:
    """(step, attempt) -> why it did not end well, of those attempts that did not.

    Args:
        kept: the run's document of failures, None when there is none.
    """
    found = {(one.step, one.attempt): (kept or {}).get(failure_key(one.step, one.attempt)) for one in attempts}
    return {key: Failure.model_validate(told) for key, told in found.items() if told}
