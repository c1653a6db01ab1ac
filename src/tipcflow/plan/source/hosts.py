"""Hosts of commands: nodes of a cluster, or the file's addresses if no cluster is given."""

import re
import shlex
from dataclasses import dataclass

from tipcflow.domain import Cluster, ConfigError, Launch, Node, Substitution
from tipcflow.plan.source.groups import Group

_PYTHON = re.compile(r"python[\d.]*")


@dataclass(frozen=True)
class Host:
    """One host. Without a cluster, `node` is None and `address` is the file's."""

    name: str
    address: str
    node: Node | None = None

    @property
    def device(self) -> str:
        """Return `cpu`, `gpu`, or '' if unknown."""
        return self.node.device if self.node else ""

    def python(self, words: str) -> str:
        """Return the file's interpreter words with the interpreter replaced by the node's."""
        if self.node is None:
            return words
        parts = words.split()
        for position, word in enumerate(parts):
            if _PYTHON.fullmatch(word.rsplit("/", 1)[-1]):
                return " ".join([shlex.quote(self.node.step_python), *parts[position + 1 :]])
        return words


def check_python(words: str, *, file: str, line: int) -> None:
    """Raise ConfigError unless the words start a Python interpreter."""
    if not any(_PYTHON.fullmatch(word.rsplit("/", 1)[-1]) for word in words.split()):
        raise ConfigError(
            "no Python interpreter is named",
            file=file,
            line=line,
            key="python",
            found=words or "nothing",
            expected="a word such as python, python3 or python3.7",
        )


def hosts_of(group: Group | None, cluster: Cluster | None) -> tuple[Host, ...]:
    """Return the hosts of a device group: the first nodes of the cluster, or the file's addresses."""
    count = group.nodes if group else 1
    if cluster is not None:
        return tuple(Host(node.name, node.address, node) for node in cluster.nodes[:count])
    if group and group.ips:
        return tuple(Host(address, address) for address in group.ips)
    return (Host("node1", "127.0.0.1"),)


def check_room(group: Group, cluster: Cluster, *, file: str, line: int) -> None:
    """Raise ConfigError if the cluster has too few nodes or slots for a group, or mixed devices."""
    where = {"file": file, "line": line, "key": "gpu_list", "found": group.text}
    if group.nodes > len(cluster.nodes):
        raise ConfigError(
            f"the entry spans {group.nodes} nodes, cluster '{cluster.name}' has {len(cluster.nodes)}",
            expected=f"at most {len(cluster.nodes)} addresses, or a cluster with {group.nodes} nodes",
            **where,  # type: ignore[arg-type]
        )
    nodes = cluster.nodes[: group.nodes]
    if len({node.device for node in nodes}) > 1:
        listed = ", ".join(f"{node.name} ({node.device})" for node in nodes)
        raise ConfigError(
            f"one training on nodes of different devices: {listed}",
            expected="nodes with the same device",
            **where,  # type: ignore[arg-type]
        )
    wanted = max(1, len(group.ids))
    for node in nodes:
        if wanted > node.slots:
            raise ConfigError(
                f"the entry takes {wanted} slots, node '{node.name}' has {node.slots} ({node.device})",
                expected=f"at most {node.slots} ids, or a node with {wanted} slots",
                **where,  # type: ignore[arg-type]
            )


def substitutions(
    groups: list[Group], cluster: Cluster | None, python: str, launch: Launch = Launch.IPS
) -> tuple[Substitution, ...]:
    """Return the file's values that the cluster replaces: addresses, launcher, interpreter with its container, and
    GPU ids on CPU nodes."""
    if cluster is None:
        return ()
    because = f"cluster '{cluster.name}'"
    made: dict[tuple[str, str], Substitution] = {}

    def note(what: str, value: str, used: str, why: str) -> None:
        if value != used:
            made[what, value] = Substitution(what=what, found=value, used=used, because=why)

    for group in groups:
        nodes = cluster.nodes[: group.nodes]
        if group.ips:
            note("ips", group.ips_text, ",".join(node.address for node in nodes), f"the nodes of {because}")
        if group.ips or launch is Launch.SCRIPT:
            note("launch", Launch.IPS.value, launch.value, "`launch` of suite or cluster")
        if nodes and nodes[0].device == "cpu" and group.ids:
            used = f"{len(group.ids)} CPU process{'es' if len(group.ids) > 1 else ''} per node"
            if launch is Launch.PS:
                used += " and a parameter server"
            elif group.form != "single" and len(group.ids) * max(1, group.nodes) > 1:
                used += " over gloo"
            note("gpus", group.gpus, used, f"the nodes of {because} have no GPU")
    for node in cluster.nodes[: max((group.nodes for group in groups), default=1)]:
        interpreter = Host(node.name, node.address, node).python(python)
        made["python", node.name] = Substitution(
            what="python", found=python, used=interpreter, because=f"the interpreter of node '{node.name}'"
        )
        if node.container:
            note("container", "none", node.container.image, f"the steps of node '{node.name}' run in it")
    return tuple(made.values())
