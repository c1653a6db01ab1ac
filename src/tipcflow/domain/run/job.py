"""The job folder's `job.json`: what the controller asks the node runner to do (docs/reference/job-folder.md)."""

from pydantic import Field

from tipcflow.domain.base import Frozen


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
        fence: number of the lease; the runner refuses a smaller one than the slot has seen.
        slots: slot indices that the runner locks on the node, exclusively.
        host: what the runner locks the slots on beside the workspace, for other workspaces of the same host; '' is
            nothing.
        root: absolute folder that commands' `cwd` and `expects` are relative to.
        env: for every command; an empty value unsets.
        barrier: wait for the file `go` before the first command.
        barrier_s, deadline_s, lease_s: seconds to wait for `go`; from the first command's start to TERM; since
            the controller was last heard of.
        keep_going: run the next command also after one failed (legs); else stop at the first failure.
        min_free_bytes: refuse to start when the workspace's file system has less room.
        hang_s: seconds without a new byte in a rank's log after which the job hangs and is ended, counted from
            each command's start; 0 never. Longer than a rank may be silent, as while another one evaluates.
        progress: patterns of the logs that show the ranks' progress, relative to `root` or to the job folder
            (`log/workerlog.*`); the command's own log counts, too.
        hang_signal: with `hang_s`, let Python processes show their stacks when they are asked by a signal, by a
            module that is put on their PYTHONPATH; without it only what py-spy tells is known.
        hang_wait_s: seconds that a job that hangs is left as it is, so that its peers, which wait for it, can be
            asked for evidence before they notice its end.
        probe: time the node itself before the first command and after the last (ExitRecord.probes).
        container: name of the container that the commands run; it is removed by force with each command's end and
            the job's, '' is none.
        container_engine: the program that does so, `docker` or one that takes the same words.
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
    container: str = ""
    container_engine: str = "docker"
