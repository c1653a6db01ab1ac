"""Clusters, nodes and the facts that a node reports."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tipcflow.domain.base import Frozen, Record
from tipcflow.domain.masking import Masked, MaskedByKey, MaskedValues

# Name of an environment variable that a shell can export.
EnvName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# Distribution that a suite's scripts import.
Framework = Literal["paddlepaddle", "torch"]
# CPU list of `taskset -c`: numbers and ranges.
_CPUS = r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"


class SshTarget(Frozen):
    """How the CLI reaches a node. Contains no secret: keys are given by path.

    `alias` is a Host of the user's OpenSSH client configuration; values set here override it.
    """

    alias: str = ""
    host: str = ""
    port: int = Field(default=0, ge=0, le=65535)
    user: str = ""
    identity_file: str = ""
    known_hosts: str = ""


# Stands for the node's name in folders.
NODE = "{node}"


class SlurmStep(Frozen):
    """The place of a node in an allocation: commands run there as steps, started on the login node.

    Attributes:
        login: whether it is the login node itself, which runs commands outside of every allocation.
        local: whether the login node is this machine; otherwise it is reached by SSH.
        job: ID of the allocation; '' for a node that is not allocated yet.
        name: name of the allocation, which no other job has; '' if an earlier version stored the node.
        port: port of the node's slurmd, which other nodes can reach; 0 if unknown.
        gres: generic resources of every step, as of `srun --gres`; '' for none.
    """

    login: bool = False
    local: bool = False
    job: str = ""
    name: str = ""
    port: int = 0
    gres: str = ""


class SlurmSource(Frozen):
    """The request for an allocation; empty values are left to Slurm's defaults.

    Attributes:
        local: whether the login node is this machine.
        partition, constraint, account, qos, gres: options of `sbatch`.
        time_limit_minutes: after this time Slurm ends the allocation.
        workspace, cache: those of a node, with `{node}` for its name.
    """

    local: bool = False
    partition: str = ""
    constraint: str = ""
    account: str = ""
    qos: str = ""
    gres: str = ""
    time_limit_minutes: int = Field(ge=1)
    workspace: str
    cache: str = ""

    def of_node(self, name: str) -> dict[str, str]:
        """Return the folders of the node of that name."""
        return {
            key: value.replace(NODE, name) for key, value in (("workspace", self.workspace), ("cache", self.cache))
        }


# A name that no program takes for an option.
_EXEC_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_PROGRAM = r"^[A-Za-z0-9_./][A-Za-z0-9_./-]*$"


class DockerExec(Frozen):
    """A running container of this machine's engine, or of the engine that `DOCKER_HOST` names.

    Attributes:
        container: its name or ID.
        program: `docker`, or a program with the same `exec` (`podman`, `nerdctl`).
    """

    kind: Literal["docker"]
    container: str = Field(pattern=_EXEC_NAME)
    program: str = Field(default="docker", pattern=_PROGRAM)


class KubernetesExec(Frozen):
    """A running pod.

    Attributes:
        pod: its name, or TYPE/NAME for the first pod of an object, as in `job/tipcflow-0`.
        namespace, container, context: those of kubectl; '' for its defaults.
        program: `kubectl`, or a program with the same `exec` (`oc`).
    """

    kind: Literal["kubernetes"]
    pod: str = Field(pattern=r"^[a-z0-9]([a-z0-9./-]*[a-z0-9])?$", max_length=253)
    namespace: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]*)?$", max_length=63)
    container: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]*)?$", max_length=63)
    context: str = Field(default="", pattern=r"^([A-Za-z0-9][^\s\x00-\x1f]*)?$")
    program: str = Field(default="kubectl", pattern=_PROGRAM)


ExecTarget = Annotated[DockerExec | KubernetesExec, Field(discriminator="kind")]


# Options of `docker run` that tipcflow sets itself, or that would hide the container's output or end.
_OURS = {"--name", "--rm", "--init", "-w", "--workdir", "--net", "--network"}
_OURS |= {"-d", "--detach", "-t", "--tty", "-it", "-ti", "-dit", "-itd"}


class Container(Frozen):
    """The container image of a node's steps. The node runner itself runs outside.

    Attributes:
        image: name of the image for the engine; it must contain bash and Python 3.7 or newer.
        args: additional options of `run`: mounts, `--gpus all`, `--shm-size=8g`, `--user 1000:1000` …; a process
            in a container is root without the last one, and so are the files that it writes.
        engine: the engine's program, `docker` or one with the same options (`nvidia-docker`).
        python: absolute path of the interpreter in the image.
        pull: whether to pull an image that is missing on the node.
    """

    image: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]*$")
    args: tuple[str, ...] = ()
    engine: str = Field(default="docker", pattern=r"^[A-Za-z0-9_./-]+$")
    python: str = Field(pattern=r"^/")
    pull: bool = False

    @field_validator("args")
    @classmethod
    def _not_ours(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        # With a detached container a step would pass before its command has run.
        for word in args:
            if word.partition("=")[0] in _OURS:
                raise ValueError(f"args must not contain {word}: tipcflow sets it")
        return args


class Launch(StrEnum):
    """Launcher and rendezvous of a distributed training.

    `ips`: Paddle's launcher with the addresses of all nodes, as in params files. `master`: Paddle's launcher
    with one node's address (Paddle 2.3 or newer). `torchrun`: PyTorch's launcher. `init_method`: no launcher, one
    process per node, whose script takes `--init-method`, `--rank` and `--world-size`. `script`: a shell script of
    the suite that starts the ranks of its node; it is called on each node with `model batch precision nodes…
    repeat` (DLPerf). `ps`: Paddle's launcher with one parameter server per node, next to the trainers.
    """

    IPS = "ips"
    MASTER = "master"
    TORCHRUN = "torchrun"
    INIT_METHOD = "init_method"
    SCRIPT = "script"
    PS = "ps"


class NodeSettings(Frozen):
    """What tipcflow uses on a node, however the node is reached.

    Attributes:
        device: type of the slots.
        slots: number of GPUs (device `gpu`) or CPU processes (device `cpu`) that one run may use at once.
        python: interpreter of the node's environment, an absolute path on the node; with a container it is only
            what the node runner runs with.
        workspace: absolute folder on the node, used only by tipcflow.
        env: environment variables of every step on the node; no secrets.
        cpus: CPU list in the form of `taskset -c`, '' for all.
        container: container of the steps, None for the node itself.
        cache: absolute folder of cached data, packages and downloads, '' for `cache` in the workspace; may be
            shared by nodes.
        cache_gb: size of the cache above which maintenance removes what was unused longest; None for no limit.
        mirrors: prefix of URLs -> replacement for downloads: another URL, or a folder on the node.
        frameworks: frameworks that steps can import on the node; None if the file does not list them: only a run's
            inspection of the node finds a missing one.
    """

    device: Literal["cpu", "gpu"] = "cpu"
    slots: int = Field(default=1, ge=1, le=1024)
    python: str = Field(pattern=r"^/")
    workspace: str = Field(pattern=r"^/.+")
    env: dict[EnvName, str] = {}
    cpus: str = Field(default="", pattern=_CPUS)
    container: Container | None = None
    cache: str = Field(default="", pattern=r"^(/.+)?$")
    cache_gb: float | None = Field(default=None, gt=0)
    mirrors: dict[str, str] = {}
    frameworks: tuple[Framework, ...] | None = None

    @field_validator("mirrors")
    @classmethod
    def _replacements(cls, mirrors: dict[str, str]) -> dict[str, str]:
        for prefix, other in mirrors.items():
            if not prefix.startswith(("http://", "https://")):
                raise ValueError(f"a mirror replaces a prefix of URLs, such as https://host/; found {prefix!r}")
            if not other.startswith(("http://", "https://", "/")):
                raise ValueError(f"the mirror of {prefix} must be a URL or an absolute folder; found {other!r}")
        return mirrors

    @property
    def cache_folder(self) -> str:
        """Return the folder of cached data, packages and downloads."""
        return self.cache or f"{self.workspace}/cache"

    @model_validator(mode="after")
    def _mountable(self) -> Self:
        if self.container and ":" in self.workspace + self.cache:
            raise ValueError("a workspace or cache with ':' in its name cannot be mounted into a container")
        return self

    @property
    def step_python(self) -> str:
        """Return the interpreter of steps: the container's if there is one."""
        return self.container.python if self.container else self.python


class Node(NodeSettings):
    """One host of a cluster: reachable by SSH, part of a Slurm allocation, or a running container or pod.

    Attributes:
        address: the IP address for the other nodes, passed to `--ips`.
        connection: the Airflow connection ID; the CLI uses `ssh` instead. Both are those of the login node if the
            node is part of an allocation.
        slurm: its place in a Slurm allocation; None for a node that is reached directly.
        exec: the running container or pod that the node is; None for a host. It replaces `ssh` and `connection`.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=63)
    address: str
    connection: str = ""
    ssh: SshTarget = SshTarget()
    slurm: SlurmStep | None = None
    exec: ExecTarget | None = None

    @model_validator(mode="after")
    def _reached_one_way(self) -> Self:
        if self.exec is None:
            return self
        if self.connection or self.ssh != SshTarget():
            raise ValueError("`exec` replaces `ssh` and `connection`: a node has one of them")
        if self.container is not None:
            raise ValueError("a node with `exec` is a container itself: `container` is not supported")
        return self

    @property
    def open_port(self) -> int:
        """Return the port that accepts connections of the other nodes, that of sshd or slurmd; 0 if none does."""
        if self.exec is not None:
            return 0
        return (self.slurm.port if self.slurm else self.ssh.port) or 22


class Cluster(Frozen):
    """An inventory of nodes.

    Attributes:
        launch: the launcher of trainings, unless the suite sets one.
        probe: whether Python processes of steps load the framework probe.
        drain: `auto`: maintenance drains a node that is slower than before; `ask`: it is only proposed.
        slurm: how the nodes are requested from Slurm; None for an inventory. Before the allocation, `nodes` are
            placeholders, one for each node that may be allocated.
    """

    name: str
    kind: Literal["ssh", "slurm"] = "ssh"
    launch: Launch | None = None
    probe: bool = True
    drain: Literal["ask", "auto"] = "ask"
    slurm: SlurmSource | None = None
    nodes: tuple[Node, ...] = Field(min_length=1)

    def node(self, name: str) -> Node:
        """Return the node of that name.

        Raises:
            KeyError: the node does not exist.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def without_framework(self, framework: str) -> tuple[str, ...]:
        """Return the nodes that do not have a framework by the cluster file; none for the framework ''."""
        return tuple(
            node.name
            for node in self.nodes
            if framework and node.frameworks is not None and framework not in node.frameworks
        )


class NodeFacts(Record):
    """Facts that a node reported at the start of a run (seeds 000 and 003 list these).

    Sizes are in bytes. An unavailable fact is '' or 0 or an empty list, never a guess. `unreachable` lists the
    addresses of peers that this node could not reach, each with the reason. `unfinished` lists the parts
    (`machine`, `addresses`, `gpus`, `software`, `libraries`, `engines`) that timed out: their facts are unknown,
    not absent. `cuda_of_driver` is the newest CUDA that the GPU driver supports, `nvidia_docker` the version of
    what gives containers the GPUs. `frameworks` has the version of each framework (`paddle`, `torch`) of the
    environment, `framework` is the first of them.
    """

    schema_version: int = 1
    node: str
    hostname: Masked = ""
    ips: tuple[Masked, ...] = ()
    os: Masked = ""
    kernel: Masked = ""
    architecture: Masked = ""
    cpu_model: Masked = ""
    cpu_count: int = 0
    cpu_flags: tuple[str, ...] = ()
    memory_bytes: int = 0
    memory_available_bytes: int = 0
    swap_bytes: int = 0
    disk_free_bytes: int = 0
    gpus: tuple[MaskedValues, ...] = ()
    driver: Masked = ""
    cuda_of_driver: Masked = ""
    cuda: Masked = ""
    cudnn: Masked = ""
    nccl: Masked = ""
    python: Masked = ""
    framework: Masked = ""
    framework_version: Masked = ""
    framework_commit: Masked = ""
    frameworks: MaskedByKey = {}
    packages: MaskedByKey = {}
    container: Masked = ""
    docker: Masked = ""
    nvidia_docker: Masked = ""
    clock_skew_s: float = 0.0
    unreachable: MaskedByKey = {}
    unfinished: tuple[Masked, ...] = ()
