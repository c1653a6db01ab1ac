"""Commands in an event loop over a connection of asyncssh, to a real sshd."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import asyncssh
import pytest
from tests.support.sshd import Server

from tipcflow.domain import InfraError
from tipcflow.transport.asyncssh_adapter import AsyncSshTransport

pytestmark = pytest.mark.process


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[AsyncSshTransport]:
    node = server.node()
    connecting = asyncssh.connect(
        node.ssh.host or "",
        port=node.ssh.port or 0,
        client_keys=[node.ssh.identity_file],
        known_hosts=node.ssh.known_hosts,
        config=None,
    )
    async with connecting as connection:
        yield AsyncSshTransport(node, connection)


def read(server: Server, command: str, *, silence_s: float = 20.0) -> tuple[list[bytes], Exception | None]:
    """The lines that a command prints, and the error that ends them."""

    async def lines() -> tuple[list[bytes], Exception | None]:
        found: list[bytes] = []
        async with connected(server) as transport:
            try:
                async for line in transport.lines(command, silence_s=silence_s):
                    found.append(line)
            except Exception as error:
                return found, error
        return found, None

    return asyncio.run(asyncio.wait_for(lines(), 60))


def test_command_has_output_and_exit_code(server: Server) -> None:
    async def check() -> None:
        async with connected(server) as transport:
            done = await transport.run("echo out; echo oops >&2; exit 3")
            assert (done.exit_code, done.stdout, done.stderr) == (3, b"out\n", b"oops\n")
            with pytest.raises(InfraError, match="node a: the command ended with 3: oops"):
                await transport.run("echo oops >&2; exit 3", check=True)

    asyncio.run(check())


def test_lines_end_with_the_command(server: Server) -> None:
    assert read(server, "echo one; sleep 0.1; echo two") == ([b"one\n", b"two\n"], None)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("echo why >&2; exit 4", "node a: the command ended with 4: why"),
        ("kill -9 $$", "node a: the command ended with -1: no reason given"),
    ],
)
def test_failed_command_is_an_error_after_its_lines(server: Server, end: str, message: str) -> None:
    lines, error = read(server, f"echo one; {end}")
    assert lines == [b"one\n"]
    assert isinstance(error, InfraError)
    assert str(error) == message


def test_lost_connection_is_an_error_after_the_lines(server: Server) -> None:
    lines, error = read(server, "echo one; sleep 0.5; kill -9 $PPID")
    assert lines == [b"one\n"]
    assert error is not None


def test_silent_command_is_ended(server: Server) -> None:
    assert isinstance(read(server, "sleep 60", silence_s=0.3)[1], TimeoutError)


def test_reader_that_has_enough_ends_the_command_without_an_error(server: Server) -> None:
    async def first() -> bytes:
        async with (
            connected(server) as transport,
            aclosing(transport.lines("echo one; sleep 60", silence_s=20)) as lines,
        ):
            return await anext(lines)

    assert asyncio.run(asyncio.wait_for(first(), 30)) == b"one\n"
