"""Cluster files with `kind: slurm`: what they declare, and what is wrong with them."""

from pathlib import Path

import pytest

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import Cluster, ConfigError

FILE = """name: hpc
kind: slurm
login:
  ssh: {alias: hpc}
  connection: hpc_login
partition: gpu
constraint: "[a100|h100]"
account: ml
gres: gpu:8
nodes: 2
time_limit_minutes: 120
node:
  device: gpu
  slots: 8
  python: /opt/python/bin/python
  workspace: /scratch/tipcflow/{node}
"""


def load(tmp_path: Path, text: str) -> Cluster:
    (tmp_path / "hpc.yaml").write_text(text)
    return load_cluster(str(tmp_path / "hpc.yaml"), tmp_path)


def test_slurm_cluster_has_a_placeholder_for_each_node(tmp_path: Path) -> None:
    cluster = load(tmp_path, FILE)
    assert [node.name for node in cluster.nodes] == ["slurm-1", "slurm-2"]
    assert {node.connection for node in cluster.nodes} == {"hpc_login"}
    assert {node.ssh.alias for node in cluster.nodes} == {"hpc"}
    first = cluster.nodes[0]
    assert first.slurm is not None
    assert (first.slurm.job, first.slurm.gres, first.slots) == ("", "gpu:8", 8)
    assert cluster.slurm is not None
    assert (cluster.slurm.partition, cluster.slurm.constraint, cluster.slurm.account) == (
        "gpu",
        "[a100|h100]",
        "ml",
    )


def test_local_login_node_needs_no_connection(tmp_path: Path) -> None:
    text = FILE.replace("  ssh: {alias: hpc}\n  connection: hpc_login\n", "  local: true\n")
    first = load(tmp_path, text).nodes[0]
    assert first.slurm is not None
    assert first.slurm.local


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("{node}", "shared", 16, "node.workspace: must contain {node}"),
        ("partition: gpu", "partition: gpu x", 6, "partition"),
        ("partition: gpu", "partition: --wrap", 6, "partition"),
        ("account: ml", "accounts: ml", 8, "accounts: unknown key"),
        ("nodes: 2", "nodes: 0", 10, "nodes"),
        ("time_limit_minutes: 120\n", "", 1, "time_limit_minutes: is required"),
        ("  ssh: {alias: hpc}\n  connection: hpc_login", "  local: false", 3, "needs `local: true`, `ssh` or"),
        ("  ssh: {alias: hpc}", "  local: true", 3, "neither `ssh` nor `connection`"),
        ("{alias: hpc}", "{user: me}", 3, "`alias` or `host`"),
        ("  slots: 8", "  address: 192.0.2.1", 14, "node.address: unknown key"),
        ("kind: slurm", "kind: slrum", 2, "kind: invalid value"),
    ],
)
def test_errors_name_their_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, FILE.replace(old, new))
    assert words in str(caught.value)
    assert f"hpc.yaml:{line}:" in str(caught.value)


@pytest.mark.parametrize("where", ["  slurm: {time_limit_minutes: 1, workspace: /x}\n", "    slurm: {job: '1'}\n"])
def test_inventory_refuses_keys_of_allocations(tmp_path: Path, where: str) -> None:
    text = "name: hpc\nnodes:\n  - name: a\n    address: 192.0.2.1\n    python: /p\n    workspace: /w\n"
    text += where if where.startswith("    ") else where.lstrip()
    with pytest.raises(ConfigError, match=r"slurm: unknown key.*kind: slurm"):
        load(tmp_path, text)
