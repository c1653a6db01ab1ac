"""Asynchronous transport over an open connection of asyncssh."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError, Node
from tipcflow.remote.slurm.commands import on_node
from tipcflow.transport.base import Completed
from tipcflow.transport.command_transport import last_line

if TYPE_CHECKING:
    import asyncssh


class AsyncSshTransport:
    """See `tipcflow.transport.async_base.AsyncTransport`.

    A command for a node of a Slurm allocation runs as a step, as in `CommandTransport`.

    Args:
        connection: open; its owner closes it.
    """

    def __init__(self, node: Node, connection: "asyncssh.SSHClientConnection") -> None:
        self.node = node
        self._connection = connection

    async def run(self, command: str, *, check: bool = False) -> Completed:
        """Run a command to its end."""
        result = await self._connection.run(
            on_node(self.node, command), stdin=asyncio.subprocess.DEVNULL, encoding=None
        )
        done = _completed(result)
        if check and done.exit_code:
            raise self._failed(done)
        return done

    async def lines(self, command: str, *, silence_s: float) -> AsyncGenerator[bytes, None]:
        """Run a command and yield its output line by line."""
        starting = self._connection.create_process(
            on_node(self.node, command), stdin=asyncio.subprocess.DEVNULL, encoding=None
        )
        process = await asyncio.wait_for(starting, silence_s)
        try:
            while line := await asyncio.wait_for(process.stdout.readline(), silence_s):
                yield line
            # A lost connection ends the output, too, and gives no exit code.
            done = _completed(await asyncio.wait_for(process.wait(), silence_s))
            if done.exit_code:
                raise self._failed(done)
        finally:
            # Not `async with`, which would wait until a silent node confirms the end of the channel.
            process.close()

    def _failed(self, done: Completed) -> InfraError:
        message = f"the command ended with {done.exit_code}: {last_line(done.stderr)}"
        return InfraError.of_node(self.node.name, message)


def _completed(result: "asyncssh.SSHCompletedProcess") -> Completed:
    """Return the result of a command; its exit code is -1 after a signal or a loss of the connection."""
    code = -1 if result.exit_status is None else result.exit_status
    return Completed(code, _bytes(result.stdout), _bytes(result.stderr))


def _bytes(output: bytes | str | None) -> bytes:
    return output.encode() if isinstance(output, str) else output or b""
