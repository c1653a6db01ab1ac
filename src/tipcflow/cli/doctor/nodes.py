"""Checks of a cluster's nodes over SSH, in parallel."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tipcflow.cli.doctor.findings import Finding, of_error
from tipcflow.domain import Cluster, InfraError, Node, NodeFacts

FRAMEWORK = "paddlepaddle"


def look_at_nodes(name: str, config_dir: Path) -> list[Finding]:
    """Findings about each node of a cluster; installs the node runner in its workspace and changes nothing else.

    Raises:
        ConfigError: no such cluster, or its file is invalid.
    """
    from tipcflow.config.cluster import load_cluster

    cluster = load_cluster(name, config_dir)
    with ThreadPoolExecutor(max_workers=min(32, len(cluster.nodes))) as pool:
        return [
            finding for found in pool.map(lambda node: _look(node, cluster), cluster.nodes) for finding in found
        ]


def _look(node: Node, cluster: Cluster) -> list[Finding]:
    from tipcflow.execute.node.session import NodeSession

    where = f"node {node.name}"
    session = NodeSession(node)
    found: list[Finding] = []
    try:
        session.prepare()
        login = f"{node.address}, workspace {node.workspace}"
        found.append(Finding(where=where, what="login", ok=True, found=login))
        peers = {
            peer.name: f"{peer.address}:{peer.ssh.port or 22}" for peer in cluster.nodes if peer.name != node.name
        }
        facts = session.facts(peers)
    except InfraError as error:
        return [*found, of_error(where, "container" if found and node.container else "login", error)]
    finally:
        session.close()
    if node.container:
        found.append(Finding(where=where, what="container", ok=True, found=facts.container))
    return [*found, _machine(where, facts), _fitness(where, facts, cluster)]


def _machine(where: str, facts: NodeFacts) -> Finding:
    gpus = f", {len(facts.gpus)} GPUs (driver {facts.driver})" if facts.gpus else ""
    found = (
        f"{facts.os}, {facts.cpu_count} x {facts.cpu_model}, {facts.memory_bytes / 2**30:.0f} GiB memory, "
        f"{facts.disk_free_bytes / 1e9:.0f} GB free{gpus}"
    )
    return Finding(where=where, what="machine", ok=True, found=found)


def _fitness(where: str, facts: NodeFacts, cluster: Cluster) -> Finding:
    from tipcflow.execute.node.preflight import check_nodes

    try:
        warnings = check_nodes(cluster, [facts], framework=FRAMEWORK, requirement=None)
    except InfraError as error:
        return of_error(where, "ready for a run", error)
    found = f"Python {facts.python}, {facts.framework} {facts.framework_version}"
    return Finding(where=where, what="ready for a run", ok=True, found="; ".join([found, *warnings]))
