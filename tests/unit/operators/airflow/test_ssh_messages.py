"""A failed login has the same words whether the CLI or an Airflow task connects."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.transport.login import connect_client
from tipcflow_operators.airflow import connect as connecting
from tipcflow_operators.airflow.async_connect import connect_async

pytestmark = pytest.mark.slow


def closed_port(_: ExitStack) -> tuple[str, int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return "127.0.0.1", int(server.getsockname()[1])


def silent_server(stack: ExitStack) -> tuple[str, int]:
    server = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
    return "127.0.0.1", int(server.getsockname()[1])


def unknown_host(_: ExitStack) -> tuple[str, int]:
    return "no-such-host.invalid", 22


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (closed_port, "node a: ci@{host}:{port} refuses connections: no SSH server is running there"),
        (silent_server, "node a: ci@{host}:{port} accepts connections but sends no banner"),
        (unknown_host, "node a: the host name {host} is unknown"),
    ],
)
def test_messages_of_cli_and_task_are_equal(
    server: Callable[[ExitStack], tuple[str, int]],
    message: str,
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    host, port = server(stack)
    monkeypatch.setenv("AIRFLOW_CONN_SSH_A", f"ssh://ci@{host}:{port}")
    monkeypatch.setattr(connecting, "TIMEOUT_S", 1)
    node = Node(
        name="a",
        address=host,
        python="/usr/bin/python3",
        workspace="/w",
        connection="ssh_a",
        ssh=SshTarget(host=host, port=port, user="ci"),
    )
    (tmp_path / "config").write_text("")
    with pytest.raises(InfraError) as from_cli:
        connect_client(node, timeout=1, patience=0.1, config_file=tmp_path / "config")
    with pytest.raises(InfraError) as from_task:
        connecting.connect(node)
    assert from_cli.value.message == from_task.value.message == message.format(host=host, port=port)
    assert from_cli.value.passing == from_task.value.passing


def test_the_triggerer_explains_a_refused_connection(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = closed_port(stack)
    monkeypatch.setenv("AIRFLOW_CONN_SSH_A", f"ssh://ci@{host}:{port}")
    node = Node(name="a", address=host, python="/usr/bin/python3", workspace="/w", connection="ssh_a")

    async def connect() -> None:
        async with connect_async(node):
            pass

    with pytest.raises(InfraError) as caught:
        asyncio.run(connect())
    assert caught.value.message == f"node a: {host} refuses connections: no SSH server is running there"
    assert caught.value.passing
