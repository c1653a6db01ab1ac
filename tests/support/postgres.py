"""A real PostgreSQL server of the tests' own: temporary, on a Unix socket, gone with its process."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.support.programs import missing

START_S = 60.0
_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")


class Server:
    """A running server; every database on it is created empty."""

    def __init__(
        self, socket_dir: Path, settings: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self.socket_dir = socket_dir
        self._settings = settings
        self._env = env or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0

    def url(self, database: str) -> str:
        return f"postgresql://tipcflow@/{database}?host={self.socket_dir}"

    def create(self, template: str = "template0") -> str:
        """A new database; returns its URL."""
        self._made += 1
        name = f"t{self._made}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop(self, url: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name_of(url)}" WITH (FORCE)')

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        options = [part for setting in self._settings for part in ("-c", setting)]
        base = self.socket_dir
        with (base / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [need_binaries() / "postgres", "-D", base / "data", "-k", base, "-h", "", *options],
                cwd=base,
                env={**os.environ, **self._env},
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
                **_account(),
            )
        _wait(self._process, base)

    def stop(self) -> None:
        """As a power cut would: without what it had not written."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)


def name_of(url: str) -> str:
    """The database's name in a URL that a server gave."""
    return url.split("@/", 1)[1].partition("?")[0]


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`, None when there is none."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return debian[-1].parent if debian else None


def need_binaries() -> Path:
    """The same; skips without them, and fails where CI should have them."""
    folder = binaries()
    if folder is None:
        missing("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    return folder


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then it runs as another user."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = names.get("postgres") or names["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@contextmanager
def lent(*files: str | Path) -> Iterator[list[Path]]:
    """Copies of files that only the server's account reads, as PostgreSQL demands for keys."""
    folder = Path(tempfile.mkdtemp(prefix="tipcflow-pg-"))
    try:
        copies = [Path(shutil.copy(file, folder)) for file in files]
        for path in (*copies, folder):
            path.chmod(0o700 if path == folder else 0o600)
            if account := _account():
                os.chown(path, account["user"], account["group"])
        yield copies
    finally:
        shutil.rmtree(folder)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG: also when the tests are killed


@contextmanager
def running(settings: Sequence[str] = _SETTINGS, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Start a server, stop it afterwards and remove what it wrote.

    Args:
        env: variables of the server's process, in addition to those of this one.
    """
    bin_dir = need_binaries()
    account = _account()
    # pytest's own folders are closed to other users; a socket's path must be short
    base = Path(tempfile.mkdtemp(prefix="tipcflow-pg-"))
    try:
        if account:
            os.chown(base, account["user"], account["group"])
        init = [bin_dir / "initdb", "-D", base / "data", "-U", "tipcflow", "-A", "trust", "-E", "UTF8"]
        subprocess.run(
            [*init, "--locale=C", "--no-sync"],
            check=True,
            cwd=base,
            capture_output=True,
            timeout=START_S,
            **account,
        )
        server = Server(base, settings, env)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _wait(server: "subprocess.Popen[bytes]", base: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(Server(base).url("postgres"), connect_timeout=2).close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {error}\n{(base / 'log').read_text()}") from error
            time.sleep(0.05)
