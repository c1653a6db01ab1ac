"""Checks of a cluster's nodes over SSH, in parallel; of a Slurm cluster, of its login node."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tipcflow.cli.doctor.findings import Finding, of_error
from tipcflow.domain import Cluster, ConfigError, InfraError, Node, NodeFacts
from tipcflow.domain.numbers.units import counted, size
from tipcflow.domain.run.names import FrameworkVersion

FRAMEWORK = "paddlepaddle"


def check_nodes(name: str, config_dir: Path) -> list[Finding]:
    """Findings about each node of a cluster; installs the node runner in its workspace and changes nothing else.

    The nodes of a Slurm cluster are unknown without an allocation: its login node is checked.

    Raises:
        ConfigError: no such cluster, or its file is invalid.
    """
    from tipcflow.config.cluster import load_cluster

    cluster = load_cluster(name, config_dir)
    if cluster.slurm is not None:
        return [_login(cluster)]
    with ThreadPoolExecutor(max_workers=min(32, len(cluster.nodes))) as pool:
        return [
            finding
            for findings in pool.map(lambda node: _inspect(node, cluster), cluster.nodes)
            for finding in findings
        ]


def _login(cluster: Cluster) -> Finding:
    """Whether Slurm's commands work on the login node, and its version is supported."""
    from tipcflow.execute.allocation.client import SlurmClient
    from tipcflow.transport.connect import connect

    where, what = "login node", "Slurm"
    try:
        with SlurmClient(cluster, connect) as client:
            version, jobs = client.version(), client.own()
    except (ConfigError, InfraError) as error:
        return of_error(where, what, error)
    state = f"{version or 'unknown version'}, {counted(len(jobs), 'job')} of the user in the queue"
    return Finding(where=where, what=what, ok=True, found=state)


def _inspect(node: Node, cluster: Cluster) -> list[Finding]:
    from tipcflow.execute.node.session import NodeSession

    where = f"node {node.name}"
    session = NodeSession(node)
    findings: list[Finding] = []
    try:
        session.prepare()
        login = f"{node.address}, workspace {node.workspace}"
        findings.append(Finding(where=where, what="login", ok=True, found=login))
        peers = {peer.name: f"{peer.address}:{peer.open_port}" for peer in cluster.nodes if peer.name != node.name}
        facts = session.facts(peers)
    except InfraError as error:
        return [*findings, of_error(where, "container" if findings and node.container else "login", error)]
    finally:
        session.close()
    if node.container:
        findings.append(Finding(where=where, what="container", ok=True, found=facts.container))
    return [*findings, _machine(where, facts), _fitness(where, facts, cluster)]


def _machine(where: str, facts: NodeFacts) -> Finding:
    gpus = f", {counted(len(facts.gpus), 'GPU')} (driver {facts.driver})" if facts.gpus else ""
    description = (
        f"{facts.os}, {facts.cpu_count} x {facts.cpu_model}, {size(facts.memory_bytes)} memory, "
        f"{size(facts.disk_free_bytes)} free{gpus}"
    )
    return Finding(where=where, what="machine", ok=True, found=description)


def _fitness(where: str, facts: NodeFacts, cluster: Cluster) -> Finding:
    from tipcflow.execute.node.preflight import check_nodes, distributions

    declared, available = cluster.node(facts.node).frameworks, distributions(facts)
    missing = [framework for framework in declared or () if framework not in available]
    framework = next(iter([*missing, *available]), FRAMEWORK if declared is None else "")
    try:
        warnings = check_nodes(cluster, [facts], framework=framework, requirement=None)
    except InfraError as error:
        return of_error(where, "ready for a run", error)
    versions = f"Python {facts.python}"
    versions += f", {FrameworkVersion(facts.framework, facts.framework_version)}" if facts.framework else ""
    return Finding(where=where, what="ready for a run", ok=True, found="; ".join([versions, *warnings]))
