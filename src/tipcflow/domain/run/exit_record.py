"""Exit record of a job or leg, always written by the node runner."""

from enum import StrEnum

from tipcflow.domain.base import Record
from tipcflow.domain.masking import Masked


class EndReason(StrEnum):
    """Reason of a job's end. Only `exited` has a meaningful `exit_code`; `signaled` has `signal`."""

    EXITED = "exited"
    SIGNALED = "signaled"
    DEADLINE = "deadline"
    STOPPED = "stopped"
    LEASE_EXPIRED = "lease_expired"
    BARRIER_TIMEOUT = "barrier_timeout"
    REFUSED = "refused"
    LOST = "lost"
    HANG = "hang"


class StoppedBy(StrEnum):
    """Cause of the end of a job that did not exit by itself.

    `peer`: the controller, because another node's part of the same step failed. `controller`: the controller
    for another reason. `node`: the node shut down, or a process on it ended the runner.
    """

    USER = "user"
    BUDGET = "budget"
    OPERATOR = "operator"
    NODE = "node"
    CONTROLLER = "controller"
    PEER = "peer"


class OutputFile(Record):
    """One expected output: `fresh` if it was written after the command's start; `damage` is the defect of its
    content (`is cut off`), '' if none is known."""

    path: str
    exists: bool
    fresh: bool = False
    size: int = 0
    sha256: str = ""
    damage: str = ""


class RankEnd(Record):
    """End of one training process before its runner ended the others, as reported by the kernel.

    Attributes:
        at: seconds since the epoch by the node's clock.
        exit_code, signal: one of both; neither if the process had ended before it could be inspected.
    """

    rank: int
    at: float = 0.0
    exit_code: int | None = None
    signal: int | None = None


class ExitRecord(Record):
    """End of a job (`leg` is '') or of one leg.

    Attributes:
        message: one line for users; for `refused` the reason.
        peak_rss_bytes: rank -> peak resident memory of that rank's processes, bytes; key '' is for processes
            without a rank (launcher, single processes); key 'total' is the peak of the sum.
        peak_gpu_bytes: rank -> peak GPU memory, bytes; empty without a GPU.
        started_at, ended_at: seconds since the epoch by the node's clock.
        stopped_by: cause of the end, for `stopped`; None if unknown.
        probes: probe of the node (`cpu`, `memory`, `disk`) -> seconds before and after the job; empty if
            the job did not request them.
        world_size: the largest number of ranks that a launcher set for a process on the node (environment
            variable PADDLE_TRAINERS_NUM or WORLD_SIZE); 0 if none was observed.
        ranks: training processes that ended before the runner ended the others, in order of their ends.
        killed: number of processes that remained after the command's end and were killed.
    """

    schema_version: int = 1
    run: str
    step: str
    leg: str = ""
    attempt: int = 1
    node: str
    reason: EndReason
    exit_code: int | None = None
    signal: int | None = None
    message: Masked = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    pid: int = 0
    peak_rss_bytes: dict[str, int] = {}
    peak_gpu_bytes: dict[str, int] = {}
    outputs: tuple[OutputFile, ...] = ()
    probes: dict[str, tuple[float, ...]] = {}
    killed: int = 0
    world_size: int = 0
    oom: bool = False
    ranks: tuple[RankEnd, ...] = ()
    stopped_by: StoppedBy | None = None

    @property
    def duration_s(self) -> float:
        """Return the wall time in seconds, never negative."""
        return max(0.0, self.ended_at - self.started_at)

    @property
    def ok(self) -> bool:
        """Whether it exited by itself with code 0, and every expected output exists and is fresh."""
        return (
            self.reason is EndReason.EXITED
            and self.exit_code == 0
            and all(output.exists and output.fresh for output in self.outputs)
        )

    @property
    def victim(self) -> bool:
        """Whether it aborted because of a peer's abort: Paddle's launcher then exits with 250."""
        return self.reason is EndReason.EXITED and self.exit_code == 250
