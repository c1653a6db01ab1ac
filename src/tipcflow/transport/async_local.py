"""Asynchronous transport by processes of this machine: for containers, pods, and a local login node."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

from tipcflow.domain import InfraError, Node
from tipcflow.transport.base import Completed
from tipcflow.transport.command_transport import last_line
from tipcflow.transport.exec_adapter import ExecTransport
from tipcflow.transport.local_adapter import KILL_AFTER_S, LINE_LIMIT, STDERR_KEPT, LocalTransport


class AsyncLocalTransport:
    """See `tipcflow.transport.async_base.AsyncTransport`."""

    def __init__(self, node: Node) -> None:
        self.node = node
        # Decides where commands run and what they printed themselves; it has no connection.
        self._route = ExecTransport(node) if node.exec is not None else LocalTransport(node)

    async def run(self, command: str, *, check: bool = False) -> Completed:
        """Run a command to its end."""
        async with self._process(command) as process:
            output, errors = await process.communicate()
        assert process.returncode is not None
        done = Completed(
            max(process.returncode, -1), output, self._route.own_stderr(process.returncode, errors[-STDERR_KEPT:])
        )
        if check and done.exit_code:
            raise self._failed(done.exit_code, done.stderr)
        return done

    async def lines(self, command: str, *, silence_s: float) -> AsyncGenerator[bytes, None]:
        """Run a command and yield its output line by line."""
        async with self._process(command) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            errors = asyncio.create_task(_tail(process.stderr))
            try:
                while line := await asyncio.wait_for(process.stdout.readline(), silence_s):
                    yield line
                code = await asyncio.wait_for(process.wait(), silence_s)
                if code:
                    raise self._failed(code, self._route.own_stderr(code, await errors))
            finally:
                errors.cancel()

    def _failed(self, code: int, stderr: bytes) -> InfraError:
        return InfraError.of_node(self.node.name, f"the command ended with {code}: {last_line(stderr)}")

    @asynccontextmanager
    async def _process(self, command: str) -> AsyncIterator[Process]:
        """Run a command; end it, and its children, with the context."""
        kept = self._route.environment
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", self._route.on_node(command)),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=LINE_LIMIT,
            env={name: value for name, value in os.environ.items() if name in kept or name.startswith("LC_")},
            cwd="/",
            start_new_session=True,
        )
        try:
            yield process
        finally:
            await _end(process)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """Read a stream to its end; return its last bytes."""
    tail = b""
    while piece := await stream.read(STDERR_KEPT):
        tail = (tail + piece)[-STDERR_KEPT:]
    return tail


async def _end(process: Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), KILL_AFTER_S)
