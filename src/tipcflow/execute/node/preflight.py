"""Preconditions on the nodes, checked before anything starts; each failure is one sentence that names the node."""

from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from tipcflow.domain import Cluster, ConfigError, FailureClass, InfraError, Node, NodeFacts
from tipcflow.domain.numbers.units import clock_offset, counted, size

# Space for a lite run's archive, data, checkpoints and logs; a step may need more (JobSpec.min_free_bytes).
MIN_FREE_BYTES = 256 * 1024 * 1024
_DISTRIBUTIONS = {"paddle": "paddlepaddle"}
# Above this, times of different nodes are not comparable; a warning, not an error.
CLOCK_WARN_S = 5.0


def parse_framework(text: str, key: str = "--framework") -> Requirement:
    """Parse a requirement such as `paddlepaddle==3.3.1` or `paddlepaddle>=3.3,<4`.

    Args:
        key: of the error.

    Raises:
        ConfigError: invalid requirement.
    """
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise ConfigError(
            "is not a valid requirement",
            key=key,
            found=text,
            expected="a name with versions, as in paddlepaddle==3.3.1",
        ) from error


def check_nodes(
    cluster: Cluster, facts: Sequence[NodeFacts], *, framework: str, requirement: Requirement | None
) -> list[str]:
    """Check the facts of the nodes; return warnings for the user.

    Args:
        framework: the distribution that the suite needs (`paddlepaddle`, `torch`, '' for none).

    Raises:
        InfraError: the first obstacle to the run; connectivity comes first, because only a user can fix it.
    """
    names = {node.address: node.name for node in cluster.nodes}
    for fact in facts:
        for peer, why in fact.unreachable.items():
            raise InfraError(
                f"node {fact.node} cannot reach node {names.get(peer, peer)}: {why}",
                node=fact.node,
                hint="check the network between the nodes (`ping` from one to the other), then run again",
            )
    for fact in facts:
        _check_node(cluster.node(fact.node), fact, framework=framework, requirement=requirement)
    versions = {fact.framework_version for fact in facts}
    if len(versions) > 1:
        details = ", ".join(f"{fact.node} has {fact.framework_version or 'none'}" for fact in facts)
        raise InfraError(f"the nodes have different {framework} versions: {details}")
    late = [
        f"the clock of node {fact.node} is {clock_offset(fact.clock_skew_s)}"
        for fact in facts
        if abs(fact.clock_skew_s) > CLOCK_WARN_S
    ]
    return [*late, *_shared_gpus(cluster, facts)]


def _shared_gpus(cluster: Cluster, facts: Sequence[NodeFacts]) -> list[str]:
    """Return a warning per GPU that several nodes use, such as local nodes of one machine."""
    users: dict[str, list[str]] = {}
    for fact in facts:
        # The first GPUs of a node are its slots.
        for gpu in fact.gpus[: cluster.node(fact.node).slots] if cluster.node(fact.node).device == "gpu" else ():
            users.setdefault(str(gpu.get("uuid", "")), []).append(fact.node)
    return [
        f"nodes {' and '.join(nodes)} use the same GPU ({uuid}): NCCL refuses two ranks on one GPU"
        for uuid, nodes in users.items()
        if uuid and nodes[1:]
    ]


def late_parts(node: Node, fact: NodeFacts) -> list[str]:
    """Return the parts of a node's facts that a run needs and that the node did not report in time."""
    needed = {"software", "gpus"} if node.device == "gpu" else {"software"}
    return sorted(needed.intersection(fact.unfinished))


def late_line(node: str, parts: Sequence[str]) -> str:
    """Return the message about parts of a node's facts that were not reported in time."""
    return f"node {node} did not report its {' and '.join(parts)} in time"


def _check_node(node: Node, fact: NodeFacts, *, framework: str, requirement: Requirement | None) -> None:
    late = late_parts(node, fact)
    if late:
        raise InfraError(
            late_line(node.name, late),
            node=node.name,
            hint="check for overload, or for a hanging nvidia-smi or interpreter on the node",
        )
    if not fact.python:
        raise InfraError(
            f"node {node.name} has no working Python at {node.python}",
            node=node.name,
            hint="set `python` of the node in the cluster file to its environment's interpreter",
            failure_class=FailureClass.ENVIRONMENT,
        )
    if framework and framework not in distributions(fact):
        kinds = "node-torch.txt" if framework == "torch" else "node-cpu.txt or node-gpu.txt"
        raise InfraError(
            f"node {node.name}: {node.python} has no {framework}",
            node=node.name,
            hint=f"install requirements/{kinds} into the node's environment",
            failure_class=FailureClass.ENVIRONMENT,
        )
    if requirement is not None:
        _check_requirement(node, fact, requirement)
    if fact.disk_free_bytes and fact.disk_free_bytes < MIN_FREE_BYTES:
        free, need = size(fact.disk_free_bytes), size(MIN_FREE_BYTES)
        raise InfraError(
            f"node {node.name}: the disk of {node.workspace} is full: {free} free, {need} needed",
            node=node.name,
            failure_class=FailureClass.DISK,
        )
    if node.device == "gpu" and len(fact.gpus) < node.slots:
        raise InfraError(
            f"node {node.name} is declared with {counted(node.slots, 'GPU')} but shows {len(fact.gpus)}",
            node=node.name,
            hint="see `nvidia-smi` on the node, or fix `slots` in the cluster file",
        )


def distributions(fact: NodeFacts) -> tuple[str, ...]:
    """Return the frameworks of the node's environment, by the names that suites use."""
    versions = {fact.framework: fact.framework_version, **fact.frameworks}
    return tuple(_DISTRIBUTIONS.get(name, name) for name, version in versions.items() if name and version)


def installed_version(fact: NodeFacts, requirement: Requirement) -> str | None:
    """Return the version of a distribution on a node; None if it is not known there."""
    installed = {name.lower().replace("_", "-"): version for name, version in fact.packages.items()}
    if fact.framework:
        # A framework is detected by its import name and required by its distribution name.
        distribution = _DISTRIBUTIONS.get(fact.framework.lower(), fact.framework.lower())
        installed.setdefault(distribution, fact.framework_version)
    wanted = requirement.name.lower().replace("_", "-")
    # paddlepaddle-gpu is the same framework as paddlepaddle, built for another device.
    return installed.get(wanted) or installed.get(f"{wanted}-gpu") or installed.get(wanted.removesuffix("-gpu"))


def _check_requirement(node: Node, fact: NodeFacts, requirement: Requirement) -> None:
    version = installed_version(fact, requirement)
    try:
        fits = version is not None and requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        fits = False
    if not fits:
        has = f"{requirement.name} {version}" if version else f"no {requirement.name}"
        raise InfraError(
            f"node {node.name} has {has}, the run requires {requirement}",
            node=node.name,
            failure_class=FailureClass.ENVIRONMENT,
        )
