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

    `peer`: the controller, because another node's part of the same step failed. `staging`: the controller, because
    this node was not ready to start in time. `controller`: the controller for another reason. `node`: the node
    shut down, or a process on it ended the runner.
    """

    USER = "user"
    BUDGET = "budget"
    OPERATOR = "operator"
    NODE = "node"
    CONTROLLER = "controller"
    PEER = "peer"
    STAGING = "staging"


class UnmetNeed(StrEnum):
    """What the node runner could not provide for a run: in its steps `environment` and `data` (the suite file's
    needs). `data`: the data do not fit the suite file or the suite; `node`: the node's folders, or the runner."""

    DOWNLOAD = "download"
    ENVIRONMENT = "environment"
    DATA = "data"
    DISK = "disk"
    NODE = "node"


class ModelContent(Record):
    """Content of an exported model of Paddle, as the node runner read it from its files.

    Attributes:
        program: name of the file with the operators.
        operators: kind of operator -> number.
        layers, quantized_layers: operators with weights (convolutions, matrix products), and those of them that
            have an input from a quantizing operator.
        parameters: values of all tensors; `weights`: of those with two dimensions or more; `zeros`: zeros among
            the weights, -1 if not counted.
        types: type of values -> their number.
        unread: why nothing is known, '' otherwise.
    """

    program: Masked = ""
    operators: dict[str, int] = {}
    layers: int = 0
    quantized_layers: int = 0
    tensors: int = 0
    parameters: int = 0
    weights: int = 0
    zeros: int = -1
    types: dict[str, int] = {}
    unread: Masked = ""


class OutputFile(Record):
    """One expected output: `fresh` if it was written after the command's start; `damage` is the defect of its
    content (`is cut off`), '' if none is known; `content` is that of an exported model, None for other files."""

    path: str
    exists: bool
    fresh: bool = False
    size: int = 0
    sha256: str = ""
    damage: Masked = ""
    content: ModelContent | None = None


class RankEnd(Record):
    """End of one training process, or parameter server, before its runner ended the others, as reported by the
    kernel.

    Attributes:
        at: seconds since the epoch by the node's clock.
        exit_code, signal: one of both; neither if the process had ended before it could be inspected.
    """

    rank: int
    at: float = 0.0
    exit_code: int | None = None
    signal: int | None = None


class ObservedRank(Record):
    """One rank of a command as the node runner observed it from outside.

    Attributes:
        seconds: from its start to the last time it was seen; `cpu_s`: CPU seconds of all its processes.
        framework: `paddle` or `torch`, whose library one of its processes had loaded; '' for none.
        framework_s: seconds for which it was observed after that.
        peers, others, local: largest number of established TCP connections at one time: to the gang's other nodes,
            to other machines, within the node.
        hidden: its connections could not be inspected (another user's process).
    """

    rank: int
    seconds: float = 0.0
    cpu_s: float = 0.0
    framework: Masked = ""
    framework_s: float = 0.0
    peers: int = 0
    others: int = 0
    local: int = 0
    hidden: bool = False

    @property
    def remote(self) -> int:
        """Return the number of connections to other machines."""
        return self.peers + self.others


class Observed(Record):
    """What the node runner observed while a command ran.

    Attributes:
        servers: whether a process was a parameter server, or got the addresses of parameter servers.
        closed: connections with the gang's other nodes that ended during the command and whose process is unknown.
        received_bytes, sent_bytes: of all network interfaces of the node but the loopback, by any program.
    """

    ranks: tuple[ObservedRank, ...] = ()
    servers: bool = False
    closed: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0


class ProcessReport(Record):
    """What the framework probe reported of one process.

    Attributes:
        framework, version: `paddle` or `torch`.
        script: name of the script.
        rank: rank that the launcher set, '' for none.
        initialized: it joined a process group (of `world_size` ranks, over `backend`).
        device: current device of the framework (`cpu`, `gpu:0`); of PyTorch `cpu` if the process never used CUDA.
        dtype, placed: type and device of the first trained parameter before the first step; '' without optimizer.
        steps: calls of an optimizer's `step`; `static_runs`: of a static program's executor.
        parallel: models wrapped for data parallelism.
        collectives: name -> calls made by the suite itself; those of such a wrapper are not counted.
        first, last: hashes of trained parameters before the first step, and at the last report.
        saved, loaded, exported: hashes of the tensors that were saved, loaded and exported.
        predictors: flags of each predictor, 0 or 1, and its threads; `predictions`: their runs.
        classes: index of the highest value in each row of the outputs that the script read, in order; -1 for a tie
            or a row with nan.
        dropped: saved files of which the report has no hashes any more.
        notes: exceptions of the probe itself.
    """

    framework: Masked = ""
    version: Masked = ""
    script: Masked = ""
    rank: Masked = ""
    initialized: bool = False
    world_size: int = 0
    backend: Masked = ""
    device: Masked = ""
    dtype: Masked = ""
    placed: Masked = ""
    steps: int = 0
    static_runs: int = 0
    parallel: int = 0
    collectives: dict[str, int] = {}
    first: tuple[Masked, ...] = ()
    last: tuple[Masked, ...] = ()
    saved: tuple[Masked, ...] = ()
    loaded: tuple[Masked, ...] = ()
    exported: tuple[Masked, ...] = ()
    predictors: tuple[dict[str, int], ...] = ()
    predictions: int = 0
    classes: tuple[int, ...] = ()
    dropped: int = 0
    notes: tuple[Masked, ...] = ()


class GpuProcess(Record):
    """A process with memory of one of the job's GPUs, as nvidia-smi on the node listed it.

    Attributes:
        gpu: number of the GPU in nvidia-smi's order; `total_bytes`: memory of that GPU, 0 if unknown.
        is_own: whether it belongs to the run: then `rank` is its global rank, -1 without one, and `size_bytes` its
            peak. Otherwise `size_bytes` is what it held when the command ended.
        command: name and user of another process; '' if unknown.
    """

    gpu: int
    pid: int
    size_bytes: int
    is_own: bool = False
    rank: int = -1
    command: Masked = ""
    total_bytes: int = 0


class ExitRecord(Record):
    """End of a job (`leg` is '') or of one leg.

    Attributes:
        message: one line for users; for `refused` the reason.
        peak_rss_bytes: rank -> peak resident memory of that rank's processes, bytes; key '' is for processes
            without a rank (launcher, single processes); key 'total' is the peak of the sum.
        peak_gpu_bytes: rank -> peak GPU memory, bytes; empty without a GPU.
        started_at, ended_at: seconds since the epoch by the node's clock.
        stopped_by: cause of the end, for `stopped`; None if unknown.
        gpu_processes: processes on the job's GPUs, of a command that failed; empty for others, without nvidia-smi,
            and for runners that do not see the processes of the whole node.
        probes: probe of the node (`cpu`, `memory`, `disk`) -> seconds before and after the job; empty if
            the job did not request them.
        world_size: the largest number of ranks that a launcher set for a process on the node (environment
            variable PADDLE_TRAINERS_NUM or WORLD_SIZE); 0 if none was observed.
        oom: the kernel's out-of-memory killer was active during the failed job, and killed one of its processes as
            far as is known.
        oom_named: the kernel named that process. In a container it cannot: any kill on the machine counts.
        disk_full: the node's disk had too little space for the job, or was full when the job failed.
        errno: for `refused`: name of the operating system's error (`ENOSPC`), '' if the runner refused for another
            reason; None in records of older runners.
        interpreter: the interpreter of a command that could not be executed, '' for none.
        unmet: why a command that ran the runner itself failed; None for every other end, and of older runners.
        ranks: training processes that ended before the runner ended the others, in order of their ends.
        servers: parameter servers that ended before the runner ended the others, in order of their ends.
        servers_finished: parameter servers that the runner ended because all trainers had succeeded.
        observed: what the runner observed of the command's ranks; None for jobs that did not run, or of older
            runners. A job of several commands has that of the command that decided its end.
        probed: the framework probe was loaded; `processes`: its reports, at most 16, those of ranks first.
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
    gpu_processes: tuple[GpuProcess, ...] = ()
    outputs: tuple[OutputFile, ...] = ()
    probes: dict[str, tuple[float, ...]] = {}
    killed: int = 0
    world_size: int = 0
    oom: bool = False
    oom_named: bool = True
    disk_full: bool = False
    errno: str | None = None
    interpreter: Masked = ""
    unmet: UnmetNeed | None = None
    ranks: tuple[RankEnd, ...] = ()
    servers: tuple[RankEnd, ...] = ()
    servers_finished: int = 0
    stopped_by: StoppedBy | None = None
    observed: Observed | None = None
    probed: bool = False
    processes: tuple[ProcessReport, ...] = ()

    @property
    def is_unstarted(self) -> bool:
        """Whether the job ended before its first command: refused, or stopped before it was released."""
        return self.pid == 0 and self.reason not in (EndReason.EXITED, EndReason.SIGNALED)

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
    def is_collateral(self) -> bool:
        """Whether it aborted because of a peer's abort: Paddle's launcher then exits with 250."""
        return self.reason is EndReason.EXITED and self.exit_code == 250
