"""Local nodes: what they are like, how they fail on request, and that they leave nothing behind."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.certify import wait_for

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Cluster, InfraError, Node

pytestmark = pytest.mark.cluster


def ssh(node: Node, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the OpenSSH client, which trusts only the known_hosts that the cluster names."""
    target = node.ssh
    options = {
        "UserKnownHostsFile": target.known_hosts,
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": "5",
    }
    argv = ["ssh", "-F", "none", "-i", target.identity_file, "-p", str(target.port)]
    argv += [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    return subprocess.run(
        [*argv, f"{target.user}@{target.host}", command],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def devices() -> set[str]:
    return {link["ifname"] for link in json.loads(subprocess.check_output(["ip", "-j", "link"]))}


@pytest.fixture(params=["namespaces", "loopback"])
def each(request: pytest.FixtureRequest, make_nodes: Callable[..., LocalNodes]) -> LocalNodes:
    return make_nodes(mode=request.param)


def test_ssh_reaches_every_node_with_the_written_keys(each: LocalNodes) -> None:
    for node in each.cluster.nodes:
        done = ssh(node, f"test -w {node.workspace} && echo $SSH_CONNECTION")
        assert done.stdout.split()[2] == node.address, done.stderr


def test_a_process_that_outlives_its_connection_is_listed(each: LocalNodes) -> None:
    assert each.processes("a") == []
    ssh(each.cluster.node("a"), "setsid sleep 1234 >/dev/null 2>&1 </dev/null &")
    # It is called `setsid sleep 1234` until it has become what it runs.
    wait_for(lambda: [one.cmdline for one in each.processes("a")] == ["sleep 1234"], what="the process")
    assert each.processes("b") == []
    each.exec("a", ["kill", "-9", str(each.processes("a")[0].pid)])
    wait_for(lambda: each.processes("a") == [], what="the end of the process")


def test_reboot_ends_every_process_and_keeps_files_and_keys(each: LocalNodes) -> None:
    node = each.cluster.node("a")
    ssh(node, f"touch {node.workspace}/kept; setsid sleep 1234 >/dev/null 2>&1 </dev/null &")
    each.reboot("a")
    wait_for(lambda: each.processes("a") == [], what="an empty node")
    assert ssh(node, f"ls {node.workspace}").stdout.strip() == "kept"


def test_killed_sshd_refuses_and_comes_back(each: LocalNodes) -> None:
    node = each.cluster.node("b")
    each.kill_sshd("b")
    assert "Connection refused" in ssh(node, "true").stderr
    each.start_sshd("b")
    assert ssh(node, "true").returncode == 0


def test_changed_host_key_is_noticed(each: LocalNodes) -> None:
    each.change_host_key("a")
    assert "HOST IDENTIFICATION HAS CHANGED" in ssh(each.cluster.node("a"), "true").stderr


def test_cluster_file_is_the_cluster(each: LocalNodes, tmp_path: Path) -> None:
    import yaml

    written = each.write_cluster_file(tmp_path / "clusters" / "local.yaml")
    assert Cluster.model_validate(yaml.safe_load(written.read_text())) == each.cluster


def test_closing_ends_everything_and_may_be_repeated(each: LocalNodes) -> None:
    node = each.cluster.node("a")
    ssh(node, "setsid sleep 4321 >/dev/null 2>&1 </dev/null &")
    each.close()
    each.close()
    assert not each.folder.exists()
    assert "sleep 4321" not in subprocess.check_output(["ps", "-eo", "args"], text=True)
    assert not {name for name in devices() if name.startswith(f"tf{each.folder.name}")}


def test_namespace_nodes_behave_like_separate_machines(make_nodes: Callable[..., LocalNodes]) -> None:
    nodes = make_nodes(mode="namespaces")
    a, b = nodes.cluster.nodes
    assert ssh(a, "hostname").stdout.strip() == "a"
    assert ssh(a, "getent hosts b").stdout.split()[0] == b.address
    assert ssh(a, f"ls -A {b.workspace}/..").stdout == ""
    assert ssh(a, "ls /dev/shm").stdout == ""
    before = ssh(a, "cat /proc/sys/kernel/random/boot_id").stdout
    nodes.reboot("a")
    assert ssh(a, "cat /proc/sys/kernel/random/boot_id").stdout != before


def test_cut_cable_drops_packets_until_restored(make_nodes: Callable[..., LocalNodes]) -> None:
    nodes = make_nodes(mode="namespaces")
    ping = ["ping", "-c1", "-W1", nodes.cluster.node("b").address]
    assert nodes.exec("a", ping).returncode == 0
    nodes.cut("b")
    assert nodes.exec("a", ping).returncode != 0
    nodes.restore("b")
    assert nodes.exec("a", ping).returncode == 0


def test_loopback_has_no_cable(make_nodes: Callable[..., LocalNodes]) -> None:
    with pytest.raises(InfraError, match="loopback address"):
        make_nodes(mode="loopback").cut("a")


def test_two_sets_of_nodes_do_not_meet(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> None:
    first, second = make_nodes(tmp_path / "one"), make_nodes(tmp_path / "two")
    second.close()
    assert not {node.address for node in first.cluster.nodes} & {node.address for node in second.cluster.nodes}
    assert ssh(first.cluster.node("a"), "true").returncode == 0


def test_broken_sshd_is_reported_with_the_original_message(
    make_nodes: Callable[..., LocalNodes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from devcluster.local_nodes import sshd

    monkeypatch.setattr(sshd, "require_sshd", lambda: "/bin/false")
    monkeypatch.setattr(sshd, "PORT_DEADLINE_S", 0.3)
    before = devices()
    with pytest.raises(InfraError, match="sshd of node a does not respond at"):
        make_nodes()
    assert devices() == before
    assert list((tmp_path / "nodes").iterdir()) == []
