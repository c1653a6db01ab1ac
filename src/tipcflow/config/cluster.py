"""Clusters: `configs/clusters/<name>.yaml`."""

from collections import Counter
from pathlib import Path

from tipcflow.config.loader import load_yaml
from tipcflow.config.suite import find_config
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
