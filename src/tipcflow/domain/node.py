"""Clusters, nodes and the facts that a node tells about itself."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from tipcflow.domain.base import Frozen, Record


class SshTarget(Frozen):
    """How the command line reaches a node. Holds no secret: keys are named by path.

    `alias` is a Host of the user's OpenSSH client configuration; what is set here wins over what stands there.
    """

    alias: str = ""
    host: str = ""
    port: int = 0
    user: str = ""
    identity_file: str = ""
    known_hosts: str = ""


# Of the words of `docker run`: what tipcflow sets, and what would take its output or its end away from it.
_OURS = {"--name", "--rm", "--init", "-w", "--workdir", "--net", "--network"}
_OURS |= {"-d", "--detach", "-t", "--tty", "-it", "-ti", "-dit", "-itd"}


class Container(Frozen):
    """The image that a node's steps run in. The node runner itself stays outside.

    Attributes:
        image: as the engine knows it; what runs in it needs bash and a Python (3.7 or newer).
        args: further words for `run`: mounts, `--gpus all`, `--shm-size=8g`, `--user 1000:1000` …; a process in a
            container is root without the last one, and so are the files that it writes.
        engine: the program that runs it, `docker` or one that takes the same words (`nvidia-docker`).
        python: interpreter in the image, an absolute path.
        pull: whether to fetch an image that is not on the node.
    """

    image: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]*$")
    args: tuple[str, ...] = ()
    engine: str = Field(default="docker", pattern=r"^[A-Za-z0-9_./-]+$")
    python: str = Field(pattern=r"^/")
    pull: bool = False

    @field_validator("args")
    @classmethod
    def _not_ours(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        # A detached container would let a step pass before it has done anything.
        for word in args:
            if word.partition("=")[0] in _OURS:
                raise ValueError(f"{word} is not for args: tipcflow says itself how and where the container runs")
        return args


class Launch(StrEnum):
    """How the processes of a distributed training are started, and find each other.

    `ips`: Paddle's launcher with the addresses of all nodes, as params files have it. `master`: Paddle's launcher
    with one node's address (Paddle 2.3 or newer). `torchrun`: PyTorch's launcher. `init_method`: no launcher, one
    process per node, whose script takes `--init-method`, `--rank` and `--world-size`.
    """

    IPS = "ips"
    MASTER = "master"
    TORCHRUN = "torchrun"
    INIT_METHOD = "init_method"


class Node(Frozen):
    """One SSH-reachable host of a cluster.

    Attributes:
        address: the IP that the other nodes reach it by; it is what `--ips` gets.
        connection: the Airflow connection id; the command line uses `ssh` instead.
        device: what its slots are.
        slots: how many GPUs (device `gpu`) or CPU processes (device `cpu`) one run may use at once.
        python: interpreter of the node's environment, an absolute path on the node; with a container it is only
            what the node runner runs with.
        workspace: absolute folder on the node that belongs to tipcflow alone.
        env: environment variables for every step on the node; never a secret.
        cpus: CPU list as `taskset -c` takes it, '' for all.
        container: what its steps run in, None for the node itself.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=63)
    address: str
    connection: str = ""
    ssh: SshTarget = SshTarget()
    device: Literal["cpu", "gpu"] = "cpu"
    slots: int = Field(default=1, ge=1)
    python: str = Field(pattern=r"^/")
    workspace: str = Field(pattern=r"^/.+")
    env: dict[str, str] = {}
    cpus: str = ""
    container: Container | None = None

    @model_validator(mode="after")
    def _mountable(self) -> "Node":
        if self.container and ":" in self.workspace:
            raise ValueError("a workspace with ':' in its name cannot be mounted into a container")
        return self

    @property
    def step_python(self) -> str:
        """The interpreter that steps run with: the container's, where there is one."""
        return self.container.python if self.container else self.python


class Cluster(Frozen):
    """An inventory of nodes. `launch` is how trainings start on it, where the suite does not say so itself."""

    name: str
    launch: Launch | None = None
    nodes: tuple[Node, ...] = Field(min_length=1)

    def node(self, name: str) -> Node:
        """The node of that name.

        Raises:
            KeyError: when there is none.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)


class NodeFacts(Record):
    """What a node said about itself at the start of a run (seeds 000 and 003 list these).

    Sizes in bytes. A fact that could not be had is '' or 0 or an empty list, never a guess. `unreachable` lists
    the addresses of peers that this node could not reach, each with the reason. `unfinished` names the parts
    (`machine`, `addresses`, `gpus`, `software`, `libraries`) that gave no answer in time: their facts are not
    known, which is not the same as none.
    """

    schema_version: int = 1
    node: str
    hostname: str = ""
    ips: tuple[str, ...] = ()
    os: str = ""
    kernel: str = ""
    cpu_model: str = ""
    cpu_count: int = 0
    cpu_flags: tuple[str, ...] = ()
    memory_bytes: int = 0
    disk_free_bytes: int = 0
    gpus: tuple[dict[str, Any], ...] = ()
    driver: str = ""
    cuda: str = ""
    cudnn: str = ""
    nccl: str = ""
    python: str = ""
    framework: str = ""
    framework_version: str = ""
    framework_commit: str = ""
    packages: dict[str, str] = {}
    container: str = ""
    clock_skew_s: float = 0.0
    unreachable: dict[str, str] = {}
    unfinished: tuple[str, ...] = ()
