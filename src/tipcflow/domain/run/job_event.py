"""Events that a job's runner prints while it is watched (docs/reference/job-folder.md), decoded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tipcflow.domain.run.exit_record import ExitRecord


@dataclass(frozen=True)
class JobState:
    """The job's state changed."""

    state: str


@dataclass(frozen=True)
class JobLog:
    """A piece of a log. `end`: the offset after it, bytes; `leg`: '' for a step's only command."""

    leg: str
    text: str
    end: int


@dataclass(frozen=True)
class JobHang:
    """The job makes no progress.

    Attributes:
        why: the runner's reason.
        unsure: its peers may make progress.
        number: which hang of the job it is, from 1 on; 0 from runners of older versions.
    """

    why: str
    unsure: bool = False
    number: int = 0

    def is_known(self, number: int, why: str) -> bool:
        """Whether it is the hang with this number; with this reason if its runner does not number hangs."""
        return self.number == number if self.number else self.why == why


@dataclass(frozen=True)
class JobTrained:
    """The trainers of the job have succeeded, and its parameter servers are running; every watch repeats it."""


@dataclass(frozen=True)
class LegEnd:
    """A leg has ended; every watch repeats all legs. `record` None: not an exit record."""

    record: ExitRecord | None


@dataclass(frozen=True)
class RunnerAlive:
    """A heartbeat of the runner; argument of `Stillness.beyond`."""

    beat: Mapping[str, Any]


@dataclass(frozen=True)
class JobFiles:
    """Small files of the job, still packed."""

    packed: Mapping[str, Any]


@dataclass(frozen=True)
class JobEnd:
    """The job has ended.

    Attributes:
        record: None if what the node sent, `payload`, is not an exit record.
        artefacts: path relative to the suite's root -> bytes of files that the job wrote.
    """

    record: ExitRecord | None
    payload: Any
    artefacts: Mapping[str, int]


@dataclass(frozen=True)
class JobGone:
    """The job will not end by itself. `why`: its runner died, or its folder was deleted."""

    why: str


JobEvent = JobState | JobLog | JobHang | JobTrained | LegEnd | RunnerAlive | JobFiles | JobEnd | JobGone
_GONE = {"lost": "the runner died without an exit record", "absent": "the job's folder does not exist any more"}


def decode(message: Mapping[str, Any]) -> JobEvent | None:
    """The event in a message of the runner's watch; None for events that no controller uses (samples).

    Raises:
        KeyError, ValueError: a log event without valid offset and size.
    """
    match message.get("event"):
        case "state":
            return JobState(str(message.get("state", "")))
        case "log":
            end = int(message["offset"]) + int(message["size"])
            return JobLog(str(message.get("leg", "")), str(message.get("data", "")), end)
        case "hang":
            why, number = str(message.get("message", "")) or "no progress", int(message.get("number") or 0)
            return JobHang(why, bool(message.get("unsure")), number)
        case "trained":
            return JobTrained()
        case "leg":
            return LegEnd(exit_record(message.get("record")))
        case "alive":
            return RunnerAlive(message)
        case "files":
            return JobFiles(message)
        case "end":
            record = message.get("record")
            return JobEnd(exit_record(record), record, _artefacts(message.get("artefacts") or ()))
        case "lost" | "absent" as event:
            return JobGone(_GONE[event])
    return None


def exit_record(payload: Any) -> ExitRecord | None:
    """The exit record; None for any other value."""
    try:
        return ExitRecord.model_validate(payload)
    except ValidationError:
        return None


def _artefacts(files: Any) -> dict[str, int]:
    written = (file for file in files if file.get("exists", True) and file.get("fresh", True))
    return {str(file["path"]): int(file["size"]) for file in written}
