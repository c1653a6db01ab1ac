"""The process that caused the failure of a training with parameter servers: the first server or trainer that died.

The others fail as a consequence in many ways, with or without messages: trainers whose server is gone crash or
retry, a launcher ends all processes of its node. So the runners' records of the first end decide, not logs.
"""

import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tipcflow.domain import ExitRecord, RankEnd
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.failure.classify import FROM_OUTSIDE
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.gpu_neighbors import class_of_message
from tipcflow.execute.job.member import Member
from tipcflow.parse.failures.failure import find_failure


class FailedProcess(NamedTuple):
    """A parameter server or a trainer that died.

    Attributes:
        at: seconds since the epoch by the clock of its node.
    """

    at: float
    is_server: bool
    end: RankEnd

    @property
    def name(self) -> str:
        """Return its name for users."""
        role = "parameter server" if self.is_server else "trainer"
        return f"{role} {self.end.rank}" if self.end.rank >= 0 else role

    @property
    def rank(self) -> int:
        """Return its global rank; -1 for a server, whose number is not a rank."""
        return -1 if self.is_server else self.end.rank

    @property
    def was_killed(self) -> bool:
        """Whether a signal from outside ended it: then logs only have messages of those that lost it."""
        return self.end.signal in FROM_OUTSIDE

    @property
    def how(self) -> str:
        """Return how it ended."""
        if self.end.signal:
            return f"was ended by signal {self.end.signal}"
        return "ended" if self.end.exit_code is None else f"exited with code {self.end.exit_code}"


def first_failed(record: ExitRecord | None) -> FailedProcess | None:
    """Return the process that died first on a node; None if none did, or without parameter servers.

    A server fails by ending before the trainers, also with code 0.
    """
    if record is None or not (record.observed and record.observed.servers):
        return None
    trained = min((end.at for end in record.ranks if end.exit_code == 0), default=float("inf"))
    died = [FailedProcess(end.at, True, end) for end in record.servers if end.at < trained or end.signal]
    died += [FailedProcess(end.at, False, end) for end in record.ranks if end.exit_code or end.signal]
    return min(died, default=None, key=lambda process: process.at)


def member_of_first(members: Sequence[Member], skew: Mapping[str, float]) -> Member | None:
    """Return the failed member whose process died first of all nodes; None without parameter servers.

    Args:
        skew: node -> clock offset ahead of the controller's clock, seconds.
    """
    died = [
        (process.at - skew.get(member.name, 0.0), member)
        for member in members
        if (process := first_failed(member.record)) is not None
    ]
    return min(died, key=lambda pair: pair[0])[1] if died else None


def class_of_process(process: FailedProcess, record: ExitRecord, diagnosis: LogDiagnosis) -> FailureClass:
    """Return the failure class of a process that died."""
    if process.end.signal == signal.SIGKILL and record.oom:
        return FailureClass.OOM_HOST
    if process.was_killed:
        return FailureClass.KILLED
    text = diagnosis.servers.get(process.end.rank, "") if process.is_server else diagnosis.text
    failure = find_failure(text) if process.is_server else diagnosis.trouble
    if failure is None or failure.is_collateral:
        return FailureClass.CODE_ERROR
    return class_of_message(failure, record, text, process.rank)
