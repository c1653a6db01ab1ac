"""Clusters: `configs/clusters/<name>.yaml`, and whether their nodes have the framework of a suite."""

from collections import Counter
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from tipcflow.config.loader import load_yaml
from tipcflow.config.suite import Suite, find_config
from tipcflow.domain.errors import ConfigError
from tipcflow.domain.node import Cluster


def load_cluster(name: str, config_dir: Path) -> Cluster:
    """The cluster of that name (or of that YAML file).

    Raises:
        ConfigError: the cluster does not exist (the message lists known ones), its file is invalid, or two nodes
            share a name or an address.
    """
    path = find_config(name, config_dir / "clusters", what="cluster")
    cluster = load_yaml(path, Cluster)
    for what in ("name", "address"):
        counts = Counter(getattr(node, what) for node in cluster.nodes)
        twice = [value for value, count in counts.items() if count > 1]
        if twice:
            raise ConfigError(
                f"two nodes have the same {what}",
                file=str(path),
                key=f"nodes.{what}",
                found=twice[0],
                expected="each once",
            )
    return cluster


def missing_framework(suite: Suite, cluster: Cluster, *, requested: str = "") -> str:
    """Return why the suite's chains cannot run on the cluster; '' if they can, or if nothing is declared.

    Args:
        requested: framework requirement of the run; a release of the suite's framework that it pins is installed.
    """
    nodes = cluster.without_framework(suite.framework)
    if not nodes or _is_pinned(suite.framework, requested):
        return ""
    if len(nodes) == len(cluster.nodes):
        return f"cluster {cluster.name} has no {suite.framework}"
    return f"node {', '.join(nodes)} of cluster {cluster.name} has no {suite.framework}"


def require_framework(suite: Suite, cluster: Cluster, *, requested: str = "") -> None:
    """Refuse a suite whose framework the cluster does not have.

    Raises:
        ConfigError: `missing_framework` has a reason.
    """
    why = missing_framework(suite, cluster, requested=requested)
    if not why:
        return
    raise ConfigError(
        f"suite {suite.name} needs {suite.framework}",
        key="--cluster",
        found=why,
        expected=f"a cluster with {suite.framework}",
        hint="`frameworks` of a node in the cluster file lists what its environment has",
    )


def _is_pinned(framework: str, requested: str) -> bool:
    """Whether a requirement makes the run install a release of the framework, as in `torch==2.13.0`."""
    try:
        requirement = Requirement(requested)
    except InvalidRequirement:
        return False
    pins = list(requirement.specifier)
    is_one = len(pins) == 1 and pins[0].operator == "==" and not pins[0].version.endswith(".*")
    return is_one and requirement.name.lower().removesuffix("-gpu") == framework
