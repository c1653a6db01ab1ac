"""Local nodes on a machine that drops what it forwards, as one with Docker does."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.programs import need

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import InfraError

pytestmark = pytest.mark.cluster
BLOB = "import socket, sys; s = socket.create_connection((sys.argv[1], 22), 5); s.sendall(b'x' * 200_000)"


def devices() -> dict[str, int]:
    """Network devices of this machine -> bytes received."""
    found = json.loads(subprocess.check_output(["ip", "-j", "-s", "link"]))
    return {link["ifname"]: link["stats64"]["rx"]["bytes"] for link in found}


def reaches(nodes: LocalNodes, source: str, target: str) -> bool:
    """Whether one node gets through to another one's sshd."""
    ssh = nodes.cluster.node(target).ssh
    ask = f"import socket; socket.create_connection(('{ssh.host}', {ssh.port}), 3)"
    return nodes.exec(source, ["python3", "-c", ask]).returncode == 0


def test_traffic_between_nodes_stays_out_of_the_host_network(
    make_nodes: Callable[..., LocalNodes],
) -> None:
    nodes = make_nodes(mode="namespaces")
    address = nodes.cluster.node("b").address
    before = devices()
    nodes.exec("a", ["python3", "-c", BLOB, address])
    grown = {name: size - before[name] for name, size in devices().items() if name != "lo"}
    assert max(grown.values()) < 50_000, grown


BRIDGE_NETFILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


@pytest.fixture
def docker_firewall() -> Iterator[None]:
    """What Docker sets at its start."""
    need("iptables")
    before = BRIDGE_NETFILTER.read_text() if BRIDGE_NETFILTER.exists() else ""
    if before:
        BRIDGE_NETFILTER.write_text("1")
    subprocess.run(["iptables", "-P", "FORWARD", "DROP"], check=True)
    yield
    subprocess.run(["iptables", "-P", "FORWARD", "ACCEPT"], check=True)
    if before:
        BRIDGE_NETFILTER.write_text(before)


@pytest.mark.usefixtures("docker_firewall")
def test_nodes_reach_each_other_where_forwarding_is_dropped(make_nodes: Callable[..., LocalNodes]) -> None:
    nodes = make_nodes()
    assert (nodes.kind, nodes.reason) == ("namespaces", "")
    assert reaches(nodes, "a", "b")
    assert reaches(nodes, "b", "a")


@pytest.fixture
def drops_all_but_loopback() -> Iterator[None]:
    """A firewall that also drops the packets from the nodes."""
    need("iptables")
    subprocess.run(["iptables", "-A", "INPUT", "!", "-i", "lo", "-j", "DROP"], check=True)
    yield
    subprocess.run(["iptables", "-D", "INPUT", "!", "-i", "lo", "-j", "DROP"], check=True)


@pytest.mark.usefixtures("drops_all_but_loopback")
def test_nodes_are_loopback_addresses_if_the_firewall_drops_all(
    make_nodes: Callable[..., LocalNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devcluster.local_nodes.sshd.PORT_DEADLINE_S", 1.0)
    before = devices().keys()
    messages: list[str] = []
    nodes = make_nodes(report=messages.append)
    assert nodes.kind == "loopback"
    assert len(messages) == 1
    assert messages[0].startswith(
        "local nodes are loopback addresses, each with an unprivileged sshd (nodes in network "
    )
    assert "does not respond at" in messages[0]
    assert reaches(nodes, "a", "b")
    assert devices().keys() == before
    assert [path.name for path in (tmp_path / "nodes").iterdir()] == [nodes.folder.name]


@pytest.mark.usefixtures("drops_all_but_loopback")
def test_requested_namespaces_do_not_become_loopback_addresses(
    make_nodes: Callable[..., LocalNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devcluster.local_nodes.sshd.PORT_DEADLINE_S", 1.0)
    with pytest.raises(InfraError, match="does not respond at"):
        make_nodes(mode="namespaces")
