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
        code = -1 if result.exit_status is None else result.exit_status
        done = Completed(code, _bytes(result.stdout), _bytes(result.stderr))
        if check and code:
            message = f"the command ended with {code}: {last_line(done.stderr)}"
            raise InfraError.of_node(self.node.name, message)
        return done

    async def lines(self, command: str, *, silence_s: float) -> AsyncGenerator[bytes, None]:
        """Run a command and yield its output line by line."""
        process = await self._connection.create_process(
            on_node(self.node, command), stdin=asyncio.subprocess.DEVNULL, encoding=None
        )
        async with process:
            while line := await asyncio.wait_for(process.stdout.readline(), silence_s):
                yield line


def _bytes(output: bytes | str | None) -> bytes:
    return output.encode() if isinstance(output, str) else output or b""
