"""Job specification `job.json` for the node runner (docs/reference/job-folder.md)."""

from pydantic import Field

from tipcflow.domain.base import Frozen
from tipcflow.domain.run.names import JobId


class JobCommand(Frozen):
    """One command of a job; a leg of an inference step, or the step's only command (`leg` is '')."""

    leg: str = ""
    text: str
    cwd: str
    env: dict[str, str] = {}
    log: str = ""


class JobSpec(Frozen):
    """One step (or one member of a gang) on one node, one attempt.

    Attributes:
        fence: number of the lease; the runner rejects a number below the slot's highest one.
        slots: slot indices that the runner locks on the node, exclusively.
        host: second name for slot locks, next to the workspace, for other workspaces of the same host; '' for
            none.
        root: absolute folder that commands' `cwd` and `expects` are relative to.
        env: environment of every command; an empty value unsets a variable.
        barrier: wait for the file `go` before the first command.
        barrier_s, deadline_s, lease_s: seconds to wait for `go`; from the first command's start to SIGTERM;
            since the controller's last heartbeat.
        keep_going: run the next command also after a failure (legs); otherwise stop at the first failure.
        min_free_bytes: minimum free space of the workspace's file system for a start.
        hang_s: seconds without a new byte in a rank's log after which the job counts as hung and is ended, counted
            from each command's start; 0 for never. Must exceed silent phases, such as another rank's evaluation.
        progress: patterns of the logs that show the ranks' progress, relative to `root` or to the job folder
            (`log/workerlog.*`); the command's own log is included.
        hang_signal: with `hang_s`, Python processes dump their stacks on a signal, by a module on their
            PYTHONPATH; without it only py-spy's stacks are available.
        hang_wait_s: seconds before a hung job is ended, so that evidence of its waiting peers can be collected
            before they detect its end.
        probe: run the node's probes before the first and after the last command (ExitRecord.probes).
        framework_probe: Python processes report what a framework does in them.
        peers: addresses of the gang's other nodes, to distinguish connections with them from others.
        trainers: trainers on this node of a training with parameter servers; 0 for every other job. The servers
            are ended when the trainers of all nodes have succeeded: on a request of the controller (`finish`), or
            at once for a job without peers.
        container: name of the commands' container, removed by force at the end of each command and of the job; ''
            for none.
        container_engine: the engine's program, `docker` or one with the same options.
    """

    schema_version: int = 1
    run: str
    step: str
    attempt: int = 1
    node: str
    fence: int
    slots: tuple[int, ...] = ()
    workspace: str
    host: str = ""
    root: str
    commands: tuple[JobCommand, ...] = Field(min_length=1)
    env: dict[str, str] = {}
    cpus: str = ""
    barrier: bool = False
    barrier_s: float = 120.0
    deadline_s: float = 900.0
    lease_s: float = 600.0
    kill_after_s: float = 5.0
    sample_every_s: float = 0.5
    keep_going: bool = False
    expects: tuple[str, ...] = ()
    artefacts: tuple[str, ...] = ()
    min_free_bytes: int = 256 * 1024 * 1024
    hang_s: float = 0.0
    progress: tuple[str, ...] = ()
    hang_signal: bool = True
    hang_wait_s: float = 0.0
    probe: bool = False
    framework_probe: bool = False
    peers: tuple[str, ...] = ()
    trainers: int = 0
    container: str = ""
    container_engine: str = "docker"

    @property
    def id(self) -> JobId:
        """The id that every process of the job carries."""
        return JobId(self.run, self.step, self.attempt)
