"""Transport over paramiko: one connection per node, one channel per command."""

import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko

from tipcflow.domain import Node
from tipcflow.domain.numbers.units import limit, size
from tipcflow.transport.base import Completed
from tipcflow.transport.command_transport import CommandTransport
from tipcflow.transport.login import connect_client

PIECE = 1 << 17
WINDOW = 1 << 15
STDERR_LOOK_S = 0.2
STDERR_KEPT = 1 << 16
# A node that sends more than this in one line, or in response to one command, is broken, bytes.
LINE_LIMIT = 4 << 20
OUTPUT_LIMIT = 64 << 20


def connect(node: Node, *, timeout: float = 10.0, config_file: Path | None = None) -> "ParamikoTransport":
    """Connect to a node.

    Raises:
        InfraError: unreachable, connection refused, unknown or changed host key, login refused: one message each.
    """
    transport = ParamikoTransport(connect_client(node, timeout=timeout, config_file=config_file), node)
    try:
        transport.check_allocation()
    except BaseException:
        transport.close()
        raise
    return transport


class ParamikoTransport(CommandTransport):
    """See `tipcflow.transport.base.Transport`. Takes ownership of the client: `close` closes it."""

    def __init__(self, client: paramiko.SSHClient, node: Node) -> None:
        super().__init__(node)
        self.client = client

    @contextmanager
    def stream(
        self,
        command: str,
        *,
        input: bytes = b"",  # noqa: A002
        timeout: float = 30.0,
        first: float = 0.0,
    ) -> Iterator[Iterator[bytes]]:
        """Run a command and yield its output lines; `timeout` is the maximum silence of the node, `first` the
        maximum time until the first output, seconds."""
        channel = self._open(self.on_node(command), timeout)
        try:
            yield self._lines(channel, input, timeout, first)
        finally:
            with suppress(EOFError):  # the connection is closed already, and the channel with it
                channel.close()

    def close(self) -> None:
        """End the connection."""
        self.client.close()

    @contextmanager
    def _guard(self, timeout: float) -> Iterator[None]:
        """Convert connection errors to InfraError. Only around paramiko calls: a full local disk is not a node's
        error."""
        try:
            yield
        except TimeoutError as error:
            raise self._error(f"no response within {limit(timeout)}") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise self._error(f"the connection is lost ({str(error) or type(error).__name__})") from error

    def _open(self, command: str, timeout: float) -> paramiko.Channel:
        """Open a channel that runs the command; opening and the server's response take at most `timeout`
        seconds."""
        until = time.monotonic() + timeout
        with self._guard(timeout):
            transport = self.client.get_transport()
            if transport is None or not transport.is_active():
                raise self._error("the connection is lost")
            channel = _session(transport, until)
            try:
                channel.settimeout(timeout)
                with closed_at(channel, until):
                    channel.exec_command(command)
            except BaseException:
                channel.close()
                raise
            return channel

    def _send(self, channel: paramiko.Channel, source: io.BufferedIOBase, local: list[OSError]) -> None:
        """Send all of `source` in a separate thread: a command may respond before it has read all of its input.

        Args:
            local: receives errors of reading the source. Connection errors, or a command that ended before reading
                all input, show when its output is read.
        """
        try:
            while piece := source.read(PIECE):
                if not _sent(channel, piece):
                    return
            channel.shutdown_write()
        except OSError as error:
            local.append(error)
            channel.close()

    def _received(
        self,
        channel: paramiko.Channel,
        errors: bytearray,
        timeout: float,
        until: float | None = None,
        *,
        first: float = 0.0,
    ) -> Iterator[bytes]:
        with self._guard(timeout):
            yield from _pieces(channel, until, errors, silence=timeout, first=first)

    def _run(
        self, command: str, source: io.BufferedIOBase, timeout: float, sink: io.BufferedIOBase | None = None
    ) -> Completed:
        until = time.monotonic() + timeout
        output, errors = sink or io.BytesIO(), bytearray()
        channel = self._open(command, timeout)
        unreadable: list[OSError] = []
        sender = threading.Thread(target=self._send, args=(channel, source, unreadable), daemon=True)
        try:
            sender.start()
            for piece in self._received(channel, errors, timeout, until):
                output.write(piece)
                if sink is None and output.tell() > OUTPUT_LIMIT:
                    raise self._error(f"the remote command printed more than {size(OUTPUT_LIMIT)}")
            code = self._exit_code(channel, until)
        finally:
            channel.close()
            sender.join()
            if unreadable:
                raise unreadable[0]
        text = output.getvalue() if sink is None and isinstance(output, io.BytesIO) else b""
        return Completed(code, text, self.own_stderr(code, bytes(errors)))

    def _lines(self, channel: paramiko.Channel, source: bytes, timeout: float, first: float) -> Iterator[bytes]:
        errors, rest = bytearray(), b""
        with self._guard(timeout), closed_at(channel, time.monotonic() + timeout):
            _sent(channel, source)  # a command that does not read it reports the reason below
            channel.shutdown_write()
        for piece in self._received(channel, errors, timeout, first=first):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            if len(rest) > LINE_LIMIT:
                raise self._error(f"the remote command printed a line of more than {size(LINE_LIMIT)}")
        code = self._exit_code(channel, time.monotonic() + timeout)
        if code:
            raise self._failed(f"the remote command ended with {code}", self.own_stderr(code, bytes(errors)))
        if rest:
            yield rest

    def _exit_code(self, channel: paramiko.Channel, until: float) -> int:
        """Return the exit code, -1 for a signal; a channel that closed without one is a lost connection."""
        channel.status_event.wait(max(0.0, until - time.monotonic()))
        transport = channel.get_transport()
        if channel.exit_status == -1 and (not channel.status_event.is_set() or not transport.is_active()):
            raise self._error("the connection is lost")
        return int(channel.exit_status)


def _session(transport: paramiko.Transport, until: float) -> paramiko.Channel:
    """Open a channel. Paramiko raises the same error for a refusal and for a timeout."""
    try:
        return transport.open_session(timeout=max(0.0, until - time.monotonic()))
    except paramiko.SSHException as error:
        if time.monotonic() >= until:
            raise TimeoutError from error
        raise


@contextmanager
def closed_at(channel: paramiko.Channel, until: float) -> Iterator[None]:
    """Close the channel at that time, which ends waits without a deadline of their own (`exec_command`).

    Raises:
        TimeoutError: the time came before the work was done.
    """
    late = threading.Event()

    def close() -> None:
        late.set()
        with suppress(
            EOFError, OSError, paramiko.SSHException
        ):  # the connection ended first: nothing is left to close
            channel.close()

    timer = threading.Timer(max(0.0, until - time.monotonic()), close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except paramiko.SSHException:
        if not late.is_set():
            raise
    finally:
        timer.cancel()
    if late.is_set():
        raise TimeoutError


def _sent(channel: paramiko.Channel, piece: bytes) -> bool:
    """Send a piece; return whether all of it was sent before the channel was closed."""
    while piece:
        try:
            sent = channel.send(piece[:WINDOW])
        except TimeoutError:  # the reader's timeout, which is shared: the reader's deadline closes the channel
            continue
        except (OSError, EOFError, paramiko.SSHException):
            return False
        if not sent:
            return False
        piece = piece[sent:]
    return True


def _pieces(
    channel: paramiko.Channel,
    until: float | None,
    errors: bytearray,
    *,
    silence: float = 0.0,
    first: float = 0.0,
) -> Iterator[bytes]:
    """Yield the command's stdout; its stderr is buffered meanwhile, so that neither can block the other."""
    deadline = until if until is not None else time.monotonic() + max(first, silence)
    while True:
        channel.settimeout(max(0.001, min(STDERR_LOOK_S, deadline - time.monotonic())))
        piece = b""
        try:
            piece = channel.recv(PIECE)
            if not piece:
                break
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise
        while channel.recv_stderr_ready():
            errors.extend(channel.recv_stderr(PIECE))
            del errors[:-STDERR_KEPT]
        if piece:
            yield piece
            if until is None:
                deadline = time.monotonic() + silence
    channel.settimeout(STDERR_LOOK_S)
    while data := channel.recv_stderr(PIECE):
        errors.extend(data)
