"""Local nodes on a machine that drops what it forwards, as one with Docker does."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from devcluster.local_nodes.nodes import LocalNodes

pytestmark = pytest.mark.cluster
BLOB = "import socket, sys; s = socket.create_connection((sys.argv[1], 22), 5); s.sendall(b'x' * 200_000)"


def devices() -> dict[str, int]:
    """Network devices of this machine -> bytes received."""
    found = json.loads(subprocess.check_output(["ip", "-j", "-s", "link"]))
    return {link["ifname"]: link["stats64"]["rx"]["bytes"] for link in found}


def reaches(nodes: LocalNodes, source: str, target: str) -> bool:
    """Whether one node gets through to another one's sshd."""
    address = nodes.cluster.node(target).address
    ask = f"import socket; socket.create_connection(('{address}', 22), 3)"
    return nodes.exec(source, ["python3", "-c", ask]).returncode == 0


def test_this_machines_network_never_sees_what_goes_from_node_to_node(
    make_nodes: Callable[..., LocalNodes],
) -> None:
    nodes = make_nodes(mode="namespaces")
    address = nodes.cluster.node("b").address
    before = devices()
    nodes.exec("a", ["python3", "-c", BLOB, address])
    grown = {name: size - before[name] for name, size in devices().items() if name != "lo"}
    assert max(grown.values()) < 50_000, grown


@pytest.fixture
def docker_firewall() -> Iterator[None]:
    """What Docker sets at its start."""
    if not shutil.which("iptables"):
        pytest.skip("no iptables here")
    subprocess.run(["iptables", "-P", "FORWARD", "DROP"], check=True)
    yield
    subprocess.run(["iptables", "-P", "FORWARD", "ACCEPT"], check=True)


@pytest.mark.usefixtures("docker_firewall")
def test_nodes_reach_each_other_where_forwarding_is_dropped(make_nodes: Callable[..., LocalNodes]) -> None:
    nodes = make_nodes(mode="namespaces")
    assert reaches(nodes, "a", "b")
    assert reaches(nodes, "b", "a")
