"""The metrics database is unavailable for a while."""

import contextlib
import shutil
import socket
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

from tests.support import postgres
from tests.support.faults.case import Case

AWAY_S = 30.0
SOCKET = ".s.PGSQL.5432"


class Line:
    """The way to a PostgreSQL server, which can be cut: a socket that is passed on to the server's own."""

    def __init__(self, server: Path) -> None:
        self._server = str(server / SOCKET)
        # A socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="tipcflow-line-"))
        self._open: list[socket.socket] = []
        self._listener = self._listen()

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.folder / SOCKET))
        listener.listen(64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()

    def cut(self) -> None:
        """Every connection breaks, and no new one can be made."""
        (self.folder / SOCKET).unlink()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def restore(self) -> None:
        """It can be reached again."""
        self._listener = self._listen()

    def close(self) -> None:
        """Remove it."""
        with contextlib.suppress(OSError):
            self.cut()
        shutil.rmtree(self.folder, ignore_errors=True)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
            one.close()


def database_locked(case: Case) -> None:
    """Another writer holds the SQLite file while the training ends."""
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    with contextlib.closing(sqlite3.connect(case.site.home / "tipcflow.db", isolation_level=None)) as other:
        other.execute("PRAGMA busy_timeout=60000")
        other.execute("BEGIN EXCLUSIVE")
        case.now()
        gate.open()
        time.sleep(AWAY_S)  # how long it is locked is the fault
        other.execute("ROLLBACK")
    case.end(running)


def database_away(case: Case) -> None:
    """The training ends while its database cannot be reached."""
    server = case.stack.enter_context(postgres.running())
    line = Line(server.socket_dir)
    case.stack.callback(line.close)
    case.use_database(server.create().replace(str(server.socket_dir), str(line.folder)))
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    line.cut()
    case.now()
    gate.open()
    time.sleep(AWAY_S)  # how long it is away is the fault
    line.restore()
    case.end(running)
