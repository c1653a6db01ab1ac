"""Transports of nodes that are containers or pods; stand-ins of the engines run the commands on this machine."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from tipcflow.domain import DockerExec, ExecTarget, InfraError, KubernetesExec, Node
from tipcflow.transport.async_local import AsyncLocalTransport
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.process

# Each ends like the program that it stands for, which `down` makes fail.
DOCKER = """#!/bin/sh
if [ -e "$(dirname "$0")/down" ]; then
    echo 'Error response from daemon: container 7d1 is not running' >&2
    exit 1
fi
shift 3
exec "$@"
"""
KUBECTL = """#!/bin/sh
if [ -e "$(dirname "$0")/down" ]; then
    echo 'Error from server (NotFound): pods "tipcflow-0" not found' >&2
    exit 1
fi
case "$*" in *insecure-skip-tls-verify*) cat "$(dirname "$0")/tls" 2>/dev/null; exit 0 ;; esac
while [ "$1" != -- ]; do shift; done
shift
"$@"
code=$?
[ $code = 0 ] || echo "command terminated with exit code $code" >&2
exit $code
"""
TARGETS: dict[str, ExecTarget] = {
    "docker": DockerExec(kind="docker", container="tipcflow-a"),
    "kubectl": KubernetesExec(kind="kubernetes", pod="tipcflow-0", namespace="ci"),
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the engines' programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name, text in (("docker", DOCKER), ("kubectl", KUBECTL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(params=TARGETS)
def node(request: pytest.FixtureRequest, programs: Path) -> Node:
    target = TARGETS[request.param]
    return Node(name="a", address="192.0.2.1", python="/usr/bin/python3", workspace="/w", exec=target)


def test_command_has_input_output_and_exit_code(node: Node) -> None:
    done = connect(node).run("cat; echo oops >&2; exit 3", input=b"bytes\0\xff", timeout=30)
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"bytes\0\xff", b"oops\n")


def test_files_are_written_and_read(node: Node, tmp_path: Path) -> None:
    transport, data = connect(node), os.urandom(300_000)
    transport.put(data, str(tmp_path / "a" / "f"), mode=0o600)
    assert transport.get(str(tmp_path / "a" / "f"), offset=10, limit=20) == data[10:30]
    transport.get_more(str(tmp_path / "a" / "f"), tmp_path / "here", limit=1 << 20)
    assert (tmp_path / "here").read_bytes() == data
    assert set(transport.get_many(str(tmp_path / "a"), ["f", "g"], tmp_path / "many", limit=1 << 20)) == {"f"}
    with pytest.raises(FileNotFoundError, match="a:"):
        transport.get(str(tmp_path / "none"))


def test_stream_yields_the_printed_lines(node: Node) -> None:
    with connect(node).stream("read x; echo $x; sleep 0.1; echo two", input=b"one\n", timeout=20) as lines:
        assert list(lines) == [b"one", b"two"]
    with (
        pytest.raises(InfraError, match="ended with 4: why"),
        connect(node).stream("echo why >&2; exit 4") as lines,
    ):
        list(lines)


def test_stopped_container_is_an_error_of_the_node(node: Node, programs: Path) -> None:
    transport = connect(node)
    (programs / "down").touch()
    with pytest.raises(
        InfraError, match=r"node a: (docker|kubectl) exec cannot run a command in .*: Error "
    ) as error:
        transport.run("true")
    assert error.value.passing
    assert error.value.hint in {"see `docker ps --all`", "see `kubectl describe pod`"}
    with pytest.raises(InfraError, match="exec cannot run a command"):
        connect(node)


def test_missing_program_is_an_error_of_the_node(node: Node) -> None:
    assert node.exec is not None
    absent = node.model_copy(update={"exec": node.exec.model_copy(update={"program": "absent-engine"})})
    with pytest.raises(InfraError, match=r"node a: absent-engine exec cannot run a command in .*: not found"):
        connect(absent, timeout=60)


def test_unverified_certificate_is_refused(programs: Path) -> None:
    node = Node(name="a", address="192.0.2.1", python="/p", workspace="/w", exec=TARGETS["kubectl"])
    (programs / "tls").write_text("true")
    with pytest.raises(InfraError, match="node a: kubectl does not verify the certificate of the API server"):
        connect(node)


def test_environment_has_the_engines_variables_only(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/other.sock")
    monkeypatch.setenv("KUBECONFIG", "/etc/kube")
    monkeypatch.setenv("SECRET", "x")
    output = connect(node).run("env").stdout.decode()
    assert "DOCKER_HOST=unix:///run/other.sock" in output
    assert "KUBECONFIG=/etc/kube" in output
    assert "SECRET" not in output


def test_event_loop_runs_commands_and_reads_lines(node: Node) -> None:
    async def check() -> None:
        transport = AsyncLocalTransport(node)
        done = await transport.run("echo out; echo oops >&2; exit 3")
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"oops\n")
        with pytest.raises(InfraError, match="node a: the command ended with 3: oops"):
            await transport.run("echo oops >&2; exit 3", check=True)
        assert [line async for line in transport.lines("echo one; echo two", silence_s=20)] == [b"one\n", b"two\n"]

    asyncio.run(check())


def test_event_loop_ends_silent_and_failed_commands(node: Node, programs: Path) -> None:
    async def check() -> None:
        transport = AsyncLocalTransport(node)
        with pytest.raises(TimeoutError):
            _ = [line async for line in transport.lines("sleep 60", silence_s=0.3)]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await transport.run("sleep 60")
        (programs / "down").touch()
        with pytest.raises(InfraError, match="exec cannot run a command"):
            _ = [line async for line in transport.lines("true", silence_s=60)]

    began = time.monotonic()
    asyncio.run(check())
    assert time.monotonic() - began < 60
