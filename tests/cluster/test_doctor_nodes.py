"""`tipcflow doctor --cluster`: real nodes, one of them broken in several ways."""

from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.cli.doctor.findings import Finding
from tipcflow.cli.doctor.nodes import check_nodes
from tipcflow.domain import ConfigError

pytestmark = pytest.mark.cluster


def look(nodes: LocalNodes, tmp_path: Path) -> dict[tuple[str, str], Finding]:
    file = nodes.write_cluster_file(tmp_path / "cluster.yaml")
    return {(found.where, found.what): found for found in check_nodes(str(file), tmp_path)}


def test_fine_cluster_has_no_problems(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path
) -> None:
    found = look(make_nodes(python=node_python), tmp_path)
    assert all(finding.ok for finding in found.values())
    assert "paddle" in found["node a", "ready for a run"].text


def test_a_node_without_paddle_is_reported(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> None:
    found = look(make_nodes(), tmp_path)["node b", "ready for a run"]
    assert not found.ok
    assert "has no paddlepaddle" in found.text


def test_a_node_whose_sshd_is_dead(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path
) -> None:
    nodes = make_nodes(python=node_python)
    nodes.kill_sshd("b")
    found = look(nodes, tmp_path)
    assert not found["node b", "login"].ok
    assert "refuses connections" in found["node b", "login"].text
    assert "node a cannot reach node b" in found["node a", "ready for a run"].text


def test_a_node_with_another_host_key_is_reported(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> None:
    nodes = make_nodes()
    nodes.change_host_key("a")
    found = look(nodes, tmp_path)["node a", "login"]
    assert not found.ok
    assert "host key" in found.text


def test_unknown_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        check_nodes("nowhere", tmp_path)
