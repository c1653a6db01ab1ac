"""Transport by processes of this machine, for a login node of Slurm that is this machine."""

import io
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import IO, ClassVar

from tipcflow.domain import Node
from tipcflow.domain.numbers.units import limit, size
from tipcflow.transport.base import Completed
from tipcflow.transport.command_transport import CommandTransport

PIECE = 1 << 17
STDERR_KEPT = 1 << 16
# As of the SSH adapter: a command that prints more is broken, bytes.
LINE_LIMIT = 4 << 20
OUTPUT_LIMIT = 64 << 20
# From SIGTERM, with which srun ends its step, to SIGKILL.
KILL_AFTER_S = 3.0


def connect(node: Node) -> "LocalTransport":
    """Return the transport of a node whose login node is this machine.

    Raises:
        InfraError: the node's allocation is lost.
    """
    transport = LocalTransport(node)
    transport.check_allocation()
    return transport


class LocalTransport(CommandTransport):
    """See `tipcflow.transport.base.Transport`."""

    # As in a login session by SSH: neither an allocation, nor an environment of this process reaches the nodes.
    environment: ClassVar[tuple[str, ...]] = (
        "HOME",
        "LANG",
        "LOGNAME",
        "PATH",
        "SHELL",
        "SLURM_CONF",
        "TZ",
        "USER",
    )

    @contextmanager
    def stream(
        self,
        command: str,
        *,
        input: bytes = b"",  # noqa: A002
        timeout: float = 30.0,
        first: float = 0.0,
    ) -> Iterator[Iterator[bytes]]:
        """Run a command and yield its output lines; `timeout` is its maximum silence, `first` the maximum time
        until the first output, seconds."""
        with self._process(self.on_node(command), io.BytesIO(input)) as process:
            yield self._lines(process, timeout, first)

    def close(self) -> None:
        """Do nothing: every command is a process of its own."""

    def _process(
        self, command: str, source: io.BufferedIOBase, unreadable: list[OSError] | None = None
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return _process(command, source, unreadable, kept=self.environment)

    def _lines(self, process: subprocess.Popen[bytes], timeout: float, first: float) -> Iterator[bytes]:
        errors, rest = bytearray(), b""
        for piece in self._pieces(process, errors, timeout, first=first):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            if len(rest) > LINE_LIMIT:
                raise self._error(f"the command printed a line of more than {size(LINE_LIMIT)}")
        code = self._code(process, timeout)
        if code:
            raise self._failed(f"the command ended with {code}", self.own_stderr(code, bytes(errors)))
        if rest:
            yield rest

    def _run(
        self, command: str, source: io.BufferedIOBase, timeout: float, sink: io.BufferedIOBase | None = None
    ) -> Completed:
        done = self._run_here(command, source, timeout, sink)
        return replace(done, stderr=self.own_stderr(done.exit_code, done.stderr))

    def _run_here(
        self, command: str, source: io.BufferedIOBase, timeout: float, sink: io.BufferedIOBase | None = None
    ) -> Completed:
        """Run a command on this machine; its stderr is as the command printed it."""
        until = time.monotonic() + timeout
        output, errors = sink or io.BytesIO(), bytearray()
        unreadable: list[OSError] = []
        with self._process(command, source, unreadable) as process:
            for piece in self._pieces(process, errors, timeout, until=until):
                output.write(piece)
                if sink is None and output.tell() > OUTPUT_LIMIT:
                    raise self._error(f"the command printed more than {size(OUTPUT_LIMIT)}")
            code = self._code(process, max(0.1, until - time.monotonic()))
        if unreadable:
            raise unreadable[0]
        text = output.getvalue() if sink is None and isinstance(output, io.BytesIO) else b""
        return Completed(code, text, bytes(errors))

    def _pieces(
        self,
        process: subprocess.Popen[bytes],
        errors: bytearray,
        timeout: float,
        *,
        until: float | None = None,
        first: float = 0.0,
    ) -> Iterator[bytes]:
        """Yield the command's stdout; its stderr is buffered meanwhile."""
        deadline = until if until is not None else time.monotonic() + max(first, timeout)
        with selectors.DefaultSelector() as selector:
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise self._error(f"no response within {limit(timeout)}")
                for key, _ in ready:
                    piece = os.read(key.fd, PIECE)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stderr:
                        errors.extend(piece)
                        del errors[:-STDERR_KEPT]
                    else:
                        yield piece
                        deadline = time.monotonic() + timeout if until is None else until

    def _code(self, process: subprocess.Popen[bytes], timeout: float) -> int:
        """Return the exit code, -1 for a signal."""
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise self._error(f"no response within {limit(timeout)}") from error
        return max(code, -1)


@contextmanager
def _process(
    command: str, source: io.BufferedIOBase, unreadable: list[OSError] | None, *, kept: Collection[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command with that stdin and environment; end it, and its children, with the context."""
    env = {name: value for name, value in os.environ.items() if name in kept or name.startswith("LC_")}
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd="/",
        start_new_session=True,  # a terminal's Ctrl-C is for the controller, which stops the jobs
    )
    assert process.stdin is not None
    sender = threading.Thread(target=_send, args=(process.stdin, source, unreadable), daemon=True)
    sender.start()
    try:
        yield process
    finally:
        _end(process)
        sender.join()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _send(stdin: IO[bytes], source: io.BufferedIOBase, unreadable: list[OSError] | None) -> None:
    """Send all of `source`: a command may respond before it has read all of its input."""
    try:
        while True:
            try:
                piece = source.read(PIECE)
            except OSError as error:
                if unreadable is not None:
                    unreadable.append(error)
                return
            if not piece:
                return
            stdin.write(piece)
    except OSError:
        return  # the command ended before it had read all of its input
    finally:
        with suppress(OSError):
            stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_AFTER_S)
            return
