"""Keeper of local nodes.

Usage: python -m devcluster.keep.nodes, with the configuration on standard input.
"""

import secrets
from pathlib import Path
from typing import Any

from devcluster.keep.keeper import Keeper, keep
from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.domain import Cluster, InfraError

# First line of the cluster file: only a file with this line is ever replaced or removed.
HEAD = "# Written by `tipcflow local up`, removed by `tipcflow local down`.\n"


def is_ours(path: Path) -> bool:
    """Whether a cluster file was written by a keeper, or does not exist."""
    try:
        return path.read_text(errors="replace").startswith(HEAD)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def own_nodes(keeper: Keeper, config: dict[str, Any]) -> None:
    """Run local nodes, and write their cluster file, until a signal.

    Args:
        config: `names`, `slots`, `device`, `python`, `kind` (null: chosen by the machine), `cluster_file`.
    """
    path = Path(config["cluster_file"])
    with local_nodes(
        keeper.home,
        names=config["names"],
        slots=config["slots"],
        device=config["device"],
        python=Path(config["python"]),
        mode=config["kind"],
        report=keeper.note,
    ) as nodes:
        try:
            _write(path, _with_cache(nodes.cluster, keeper.home))
            keeper.ready(_facts(nodes, path))
            keeper.stay(lambda: _check(nodes))
        finally:
            if is_ours(path):
                path.unlink(missing_ok=True)


def _with_cache(cluster: Cluster, home: Path) -> Cluster:
    """The cluster with a cache of downloads that stays when the nodes are removed."""
    nodes = [node.model_copy(update={"cache": str(home / "cache")}) for node in cluster.nodes]
    return cluster.model_copy(update={"nodes": tuple(nodes)})


def _write(path: Path, cluster: Cluster) -> None:
    import yaml

    data = cluster.model_dump(mode="json", exclude_defaults=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(HEAD + yaml.safe_dump(data, sort_keys=False))
    draft.replace(path)


def _facts(nodes: LocalNodes, path: Path) -> dict[str, Any]:
    return {
        "kind": nodes.kind,
        "sentence": nodes.sentence,
        "cluster_file": str(path),
        "folder": str(nodes.folder),
        "nodes": {node.name: [node.ssh.host, node.ssh.port] for node in nodes.cluster.nodes},
    }


def _check(nodes: LocalNodes) -> None:
    if ended := nodes.ended():
        raise InfraError(f"the first process of node {', '.join(ended)} ended; all local nodes were stopped")


if __name__ == "__main__":
    keep("nodes", own_nodes)
