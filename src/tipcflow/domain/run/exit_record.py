"""How a job, or one leg of it, ended: written by the node runner, always."""

from enum import StrEnum

from tipcflow.domain.base import Record
from tipcflow.domain.masking import Masked


class EndReason(StrEnum):
    """Why it ended. Only `exited` has a meaningful `exit_code`; `signaled` has `signal`."""

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
    """Who ended a job that did not end by itself.

    `peer`: the controller, because another node's part of the same step ended badly. `controller`: the controller
    for a reason of its own. `node`: the node shut down, or something on it ended the runner.
    """

    USER = "user"
    BUDGET = "budget"
    OPERATOR = "operator"
    NODE = "node"
    CONTROLLER = "controller"
    PEER = "peer"


class OutputFile(Record):
    """One expected output: `fresh` says that it was written after the command started, `damage` what is wrong
    with its content (`is cut off`), '' where nothing is known to be."""

    path: str
    exists: bool
    fresh: bool = False
    size: int = 0
    sha256: str = ""
    damage: str = ""


class RankEnd(Record):
    """How one training process ended before its runner ended the rest, as the kernel says.

    Attributes:
        at: seconds since the epoch by the node's clock.
        exit_code, signal: one of both; neither when the process was gone before anybody could look.
    """

    rank: int
    at: float = 0.0
    exit_code: int | None = None
    signal: int | None = None


class ExitRecord(Record):
    """How a job (`leg` is '') or one leg ended.

    Attributes:
        message: one line for users; for `refused` the reason.
        peak_rss_bytes: rank -> peak resident memory of that rank's processes, bytes; key '' is everything that
            belongs to no rank (launcher, single processes); key 'total' is the peak of the sum.
        peak_gpu_bytes: rank -> peak GPU memory, bytes; empty without a GPU.
        started_at, ended_at: seconds since the epoch by the node's clock.
        stopped_by: who ended it, for `stopped`; None where that is not known.
        probes: probe of the node (`cpu`, `memory`, `disk`) -> seconds before and after the job; empty where the
            job was not asked for them.
        world_size: the largest number of ranks that a launcher told one of its processes on the node (environment
            variable PADDLE_TRAINERS_NUM or WORLD_SIZE); 0 where none was seen.
        ranks: training processes that ended before the runner ended the rest, in that order.
        killed: how many processes were still there after the command had ended and were killed.
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
        """Wall seconds between start and end, never negative."""
        return max(0.0, self.ended_at - self.started_at)

    @property
    def ok(self) -> bool:
        """Exited by itself with 0, and every expected output is there and fresh."""
        return (
            self.reason is EndReason.EXITED
            and self.exit_code == 0
            and all(output.exists and output.fresh for output in self.outputs)
        )

    @property
    def victim(self) -> bool:
        """Whether it aborted because a peer did: Paddle's launcher exits with 250 then."""
        return self.reason is EndReason.EXITED and self.exit_code == 250
