"""`tipcflow nodes add`: a real sshd, whose host key is shown and accepted or not, becomes a node of a cluster."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.certify import wait_for
from tests.support.programs import missing

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.cli.nodes.host import install_environment, survey
from tipcflow.config.cluster import load_cluster
from tipcflow.domain import InfraError, Node
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.cluster
PROGRAM = str(Path(sys.executable).with_name("tipcflow"))
UV = Path(__file__).resolve().parents[3] / ".tipcflow" / "uv" / "bin" / "uv"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    configs = tmp_path / "configs"
    configs.mkdir()
    return os.environ | {"TIPCFLOW_HOME": str(tmp_path / "home"), "TIPCFLOW_CONFIG_DIR": str(configs)}


def options(node: Node) -> list[str]:
    ssh = node.ssh
    return [ssh.host, "--port", str(ssh.port), "--user", ssh.user, "--identity-file", ssh.identity_file]


@pytest.fixture
def add(command: Command) -> Command:
    return lambda node, *more: command("nodes", "add", *options(node), *more)


def fingerprint(nodes: LocalNodes, name: str) -> str:
    """What the host's administrator sees on the host."""
    argv = ["ssh-keygen", "-lf", str(nodes.folder / name / "host_key.pub")]
    return subprocess.check_output(argv, text=True).split()[1]


def placed(node: Node, python: Path) -> list[str]:
    return ["--workspace", node.workspace, "--python", str(python)]


def written(tmp_path: Path) -> list[str]:
    folder = tmp_path / "configs" / "clusters"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_two_hosts_become_a_cluster_that_passes_the_doctor(
    make_nodes: Callable[..., LocalNodes], node_python: Path, add: Command, tmp_path: Path
) -> None:
    nodes = make_nodes()
    for name in ("a", "b"):
        node = nodes.cluster.node(name)
        done = add(
            node, "--accept-fingerprint", fingerprint(nodes, name), "--name", name, *placed(node, node_python)
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "node b   ready for a run  ok" in done.stdout.replace("node b  ", "node b   ")
    cluster = load_cluster("lab", tmp_path / "configs")
    assert [(node.name, node.address, node.connection) for node in cluster.nodes] == [
        (name, nodes.cluster.node(name).address, f"tipcflow_{name}") for name in ("a", "b")
    ]
    # Trusted is only what was accepted.
    trusted = Path(cluster.nodes[0].ssh.known_hosts)
    assert trusted.read_text() == (nodes.folder / "known_hosts").read_text()


def test_without_an_accepted_key_nothing_is_sent_or_written(
    make_nodes: Callable[..., LocalNodes], add: Command, tmp_path: Path
) -> None:
    nodes = make_nodes()
    node = nodes.cluster.node("a")
    done = add(node)
    assert done.returncode == 2
    assert f"expected {fingerprint(nodes, 'a')}" in done.stderr
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in done.stderr
    other = add(node, "--accept-fingerprint", fingerprint(nodes, "b"))
    assert other.returncode == 2
    assert "has another host key" in other.stderr
    assert written(tmp_path) == []
    assert "Accepted publickey" not in (nodes.folder / "a" / "sshd.log").read_text()


@pytest.mark.parametrize(("reply", "code"), [("y", 0), ("n", 2)])
def test_a_terminal_prompts_the_user(
    make_nodes: Callable[..., LocalNodes],
    node_python: Path,
    environ: dict[str, str],
    tmp_path: Path,
    reply: str,
    code: int,
) -> None:
    nodes = make_nodes()
    node = nodes.cluster.node("a")
    ours, theirs = pty.openpty()
    argv = [PROGRAM, "nodes", "add", *options(node), *placed(node, node_python)]
    process = subprocess.Popen(argv, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    messages = b""

    def requested() -> bool:
        nonlocal messages
        messages += os.read(ours, 4096)
        return b"Is it the same?" in messages

    wait_for(requested, what="the question")
    assert fingerprint(nodes, "a").encode() in messages
    os.write(ours, f"{reply}\n".encode())
    _drain(ours)
    assert process.wait(60) == code
    os.close(ours)
    assert written(tmp_path) == (["lab.known_hosts", "lab.yaml"] if reply == "y" else [])


def _drain(terminal: int) -> None:
    """Read until the program has closed its terminal."""
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        return


def test_a_changed_key_is_not_accepted_by_the_entry(
    make_nodes: Callable[..., LocalNodes], node_python: Path, add: Command, environ: dict[str, str]
) -> None:
    nodes = make_nodes()
    node = nodes.cluster.node("a")
    assert add(node, "--accept-fingerprint", fingerprint(nodes, "a"), *placed(node, node_python)).returncode == 0
    nodes.change_host_key("a")
    argv = [PROGRAM, "doctor", "--cluster", "lab"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert "has changed" in done.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--cluster", "local"], "--cluster: cannot be the cluster of a host; found 'local'"),
        (["--device", "tpu"], "--device: invalid value; found 'tpu'; expected one of cpu, gpu"),
        (["--python", "python3"], "--python: not an absolute path on the host; found 'python3'"),
        (["--identity-file", "/nowhere"], "--identity-file: no such key file; found '/nowhere'"),
    ],
)
def test_bad_options_are_one_message(nodes: LocalNodes, add: Command, more: list[str], words: str) -> None:
    done = add(nodes.cluster.node("a"), *more)
    assert done.returncode == 2
    assert words in done.stderr
    assert "host key of" not in done.stderr


def test_a_host_that_does_not_respond_is_named(make_nodes: Callable[..., LocalNodes], add: Command) -> None:
    nodes = make_nodes(mode="loopback")
    nodes.kill_sshd("a")
    done = add(nodes.cluster.node("a"))
    assert done.returncode == 5
    assert "refuses connections" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_environment_is_installed_once_and_a_failure_is_reported(
    make_nodes: Callable[..., LocalNodes], tmp_path: Path
) -> None:
    """Real uv on the node, with requirements that need no network."""
    if not UV.exists():
        missing("uv is not installed (make install)")
    nodes = make_nodes()
    node = nodes.cluster.node("a")
    node = node.model_copy(update={"python": f"{node.workspace}/envs/node-cpu/bin/python"})
    requirements = tmp_path / "node-cpu.txt"
    requirements.write_text("# nothing\n")
    transport = connect(node)
    try:
        host = survey(transport, "a")
        assert (host.hostname, host.system, host.root) == ("a", "Linux", os.geteuid() == 0)
        assert re.search(r"python3", host.python)
        report: list[str] = []
        for _ in range(2):
            install_environment(transport, node, host, uv=UV, requirements=requirements, report=report.append)
        assert report[0].startswith("installing the environment ")
        assert report[-1] == f"the environment {node.workspace}/envs/node-cpu is complete"
        assert transport.run(f"{node.python} -c 'print(6 * 7)'").stdout == b"42\n"
        requirements.write_text(f"tipcflow-does-not-exist==1.0 --hash=sha256:{'0' * 64}\n")
        with pytest.raises(InfraError, match=r"the environment of a cannot be installed \(exit code"):
            install_environment(transport, node, host, uv=UV, requirements=requirements, report=report.append)
    finally:
        transport.close()
