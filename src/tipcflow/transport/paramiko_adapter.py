"""Transport over paramiko: one connection per node, one channel per command."""

import io
import shutil
import tarfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko

from tipcflow.domain import InfraError, Node
from tipcflow.domain.numbers.units import limit, size
from tipcflow.remote import commands
from tipcflow.remote.fetching import Listed, listed_in, pack_files
from tipcflow.remote.runner.outputs import is_secret
from tipcflow.transport.base import Completed
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
    return ParamikoTransport(connect_client(node, timeout=timeout, config_file=config_file), node)


class ParamikoTransport:
    """See `tipcflow.transport.base.Transport`. Takes ownership of the client: `close` closes it."""

    def __init__(self, client: paramiko.SSHClient, node: Node) -> None:
        self.client, self.node = client, node

    def run(self, command: str, *, input: bytes | None = None, timeout: float = 60.0) -> Completed:  # noqa: A002
        """Run a command to its end; `timeout` limits the whole command, seconds."""
        return self._run(command, io.BytesIO(input or b""), timeout)

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
        channel = self._open(command, timeout)
        try:
            yield self._lines(channel, input, timeout, first)
        finally:
            with suppress(EOFError):  # the connection is closed already, and the channel with it
                channel.close()

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644, timeout: float = 300.0) -> None:
        """Write a file on the node atomically."""
        with io.BytesIO(data) if isinstance(data, bytes) else data.open("rb") as source:
            done = self._run(commands.write_file(remote, mode=mode, seconds=timeout + 30), source, timeout)
        if done.exit_code:
            raise self._failed(f"cannot write {remote}", done.stderr)

    def get(
        self,
        remote: str,
        local: Path | None = None,
        *,
        offset: int = 0,
        limit: int | None = None,
        timeout: float = 300.0,
    ) -> bytes:
        """Return a file's bytes, or write them to `local` atomically."""
        command = commands.read_file(remote, offset=offset, limit=limit)
        if local is None:
            sink = io.BytesIO()
            self._check_read(remote, self._run(command, io.BytesIO(), timeout, sink))
            return sink.getvalue()
        local.parent.mkdir(parents=True, exist_ok=True)
        aside = local.with_name(local.name + ".part")
        try:
            with aside.open("wb") as file:
                self._check_read(remote, self._run(command, io.BytesIO(), timeout, file))
            aside.replace(local)
        finally:
            aside.unlink(missing_ok=True)
        return b""

    def get_more(self, remote: str, local: Path, *, limit: int, timeout: float = 300.0) -> None:
        """Append a file's bytes to `local`, starting at its current size; bytes that arrived before an error
        stay."""
        local.parent.mkdir(parents=True, exist_ok=True)
        with local.open("ab") as file:
            offset = file.tell()
            if offset < limit:
                command = commands.read_file(remote, offset=offset, limit=limit - offset)
                self._check_read(remote, self._run(command, io.BytesIO(), timeout, file))

    def get_many(
        self, root: str, names: Sequence[str], local: Path, *, limit: int, timeout: float = 300.0
    ) -> dict[str, Listed]:
        """List files below `root`, and fetch the small ones into the folder `local`."""
        wanted = [name for name in names if not is_secret(name)]
        if not wanted:
            return {}
        local.mkdir(parents=True, exist_ok=True)
        incoming = local / ".incoming"
        try:
            with incoming.open("wb") as file:
                done = self._run(pack_files(root, wanted, limit=limit), io.BytesIO(), timeout, file)
            if done.exit_code:
                raise self._failed(f"cannot read files of {root}", done.stderr)
            with incoming.open("rb") as file:
                head = list(iter(lambda: file.readline().rstrip(b"\n"), b""))
                try:
                    listed = listed_in(head, wanted)
                except ValueError as error:
                    raise self._error(f"unexpected output of the file listing: {head[:1]!r}") from error
                self._unpack(file, local)
            return listed
        finally:
            incoming.unlink(missing_ok=True)

    def close(self) -> None:
        """End the connection."""
        self.client.close()

    def _unpack(self, archive: io.BufferedReader, local: Path) -> None:
        """Extract regular files only (a link could point anywhere), and only below `local`."""
        # tarfile's own filters are newer than Debian 12's Python.
        root = local.resolve()
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                if is_secret(member.name) or not member.isreg():
                    continue
                target = (root / member.name).resolve()
                content = tar.extractfile(member) if target.is_relative_to(root) else None
                if content is None:
                    raise self._error(f"sent {member.name!r}, which would leave the folder")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)

    def _check_read(self, remote: str, done: Completed) -> None:
        if done.exit_code == commands.NO_SUCH_FILE:
            raise FileNotFoundError(f"{self.node.name}:{remote}")
        if done.exit_code:
            raise self._failed(f"cannot read {remote}", done.stderr)

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
        return Completed(code, text, bytes(errors))

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
            raise self._failed(f"the remote command ended with {code}", bytes(errors))
        if rest:
            yield rest

    def _exit_code(self, channel: paramiko.Channel, until: float) -> int:
        """Return the exit code, -1 for a signal; a channel that closed without one is a lost connection."""
        channel.status_event.wait(max(0.0, until - time.monotonic()))
        transport = channel.get_transport()
        if channel.exit_status == -1 and (not channel.status_event.is_set() or not transport.is_active()):
            raise self._error("the connection is lost")
        return int(channel.exit_status)

    def _failed(self, what: str, stderr: bytes) -> InfraError:
        """Return the error of a command that reported a reason."""
        line = _last_line(stderr)
        return InfraError.of_node(self.node.name, f"{what}: {line}", output=line)

    def _error(self, message: str) -> InfraError:
        return InfraError.of_node(self.node.name, message)


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


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
