"""Clusters of the configuration folder that this installation does not use, such as that of docker-compose."""

from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.cluster import unset_variables

if TYPE_CHECKING:
    from tipcflow.store import Store


def why_unused(store: "Store", name: str, config_dir: Path) -> str:
    """Return why a cluster is not in use; '' if it is.

    An address with a variable that is not set belongs to another installation (`configs/clusters/compose.yaml`
    on a machine without docker-compose), unless runs of this database used the cluster.

    Raises:
        ConfigError: the cluster does not exist, or its file is not YAML.
    """
    unset = unset_variables(name, config_dir)
    if not unset or store.runs.used_cluster(name):
        return ""
    return f"cluster {name} is not in use: {', '.join(unset)} is not set, and no run used the cluster"
