"""Clusters, nodes and the facts that a node tells about itself."""

from typing import Any, Literal

from pydantic import Field

from tipcflow.domain.base import Frozen


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


class Node(Frozen):
    """One SSH-reachable host of a cluster.

    Attributes:
        address: the IP that the other nodes reach it by; it is what `--ips` gets.
        connection: the Airflow connection id; the command line uses `ssh` instead.
        device: what its slots are.
        slots: how many GPUs (device `gpu`) or CPU processes (device `cpu`) one run may use at once.
        python: interpreter of the node's environment, an absolute path on the node.
        workspace: absolute folder on the node that belongs to tipcflow alone.
        env: environment variables for every step on the node; never a secret.
        cpus: CPU list as `taskset -c` takes it, '' for all.
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


class Cluster(Frozen):
    """An inventory of nodes."""

    name: str
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


class NodeFacts(Frozen):
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
