"""Checks of this machine: requirements of the scheduler and of local nodes."""

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tipcflow.cli.doctor.findings import Finding
from tipcflow.config.settings import Settings, safe_url
from tipcflow.domain import TipcflowError
from tipcflow.domain.numbers.units import counted, size

# A lite run's logs and certificate are small; the nodes' environment is not.
ROOM_BYTES = 2 << 30
HERE = "here"


def check_local(settings: Settings) -> list[Finding]:
    """All findings about this machine; read-only, except for an object that is written and removed."""
    return [
        _python(),
        _program("git", "checks out the suites' code", "install the package git"),
        *_for_local_nodes(),
        _uv(settings.home),
        _node_environment(settings.home),
        _home(settings.home),
        _configs(settings.config_dir),
        _database(settings.database_url),
        _object_store(settings),
    ]


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding(
        where=HERE,
        what="Python",
        ok=ok,
        found=f"{platform.python_version()} at {sys.executable}",
        fix="" if ok else "install Python 3.11 or newer, then `make install PYTHON=/path/to/it`",
    )


def _program(name: str, use: str, fix: str) -> Finding:
    path = shutil.which(name)
    return Finding(where=HERE, what=name, ok=bool(path), found=path or use, fix="" if path else fix)


def _for_local_nodes() -> Iterator[Finding]:
    from devcluster.install.packages import find_program, for_local_nodes

    missing = []
    for need in for_local_nodes():
        path = find_program(need)
        fix = f"install the package {need.package} (as root, `tipcflow demo` does so itself)"
        if path or not need.optional:
            yield Finding(
                where=HERE, what=need.program, ok=bool(path), found=path or need.use, fix="" if path else fix
            )
        else:
            yield Finding(where=HERE, what=need.program, ok=True, found=f"not installed; it {need.use}")
        if not path and not need.optional:
            missing.append(need.package)
    yield _local_nodes(missing)


def _local_nodes(missing: list[str]) -> Finding:
    """Which kind of local nodes this machine can run; `missing` are packages without which it runs none."""
    from devcluster.local_nodes.kinds import choose, sentence

    fix = f"install {' and '.join(missing)}; nodes on other machines do not need them" if missing else ""
    state = "none can start here" if missing else sentence(*choose())
    return Finding(where=HERE, what="local nodes", ok=not missing, found=state, fix=fix)


def _uv(home: Path) -> Finding:
    from tipcflow.install.uv import find_uv

    path = find_uv(home)
    return Finding(
        where=HERE,
        what="uv",
        ok=bool(path),
        found=str(path or "installs the nodes' environment"),
        fix="" if path else "`make install`, or `pip install uv`",
    )


def _node_environment(home: Path) -> Finding:
    from devcluster.install.environment import is_ready

    folder = home / "envs" / "node-cpu"
    ok = is_ready(home)
    return Finding(
        where=HERE,
        what="node environment",
        ok=ok,
        found=str(folder),
        fix="" if ok else "missing or outdated; `tipcflow demo` creates it",
    )


def _home(home: Path) -> Finding:
    standing = next(folder for folder in (home, *home.parents) if folder.is_dir())
    free = shutil.disk_usage(standing).free
    space = f"{home}: {size(free)} free"
    if not os.access(standing, os.W_OK):
        fix = f"{standing} is not writable: set TIPCFLOW_HOME to a writable folder"
    elif free < ROOM_BYTES:
        fix = f"free at least {size(ROOM_BYTES)}, or set TIPCFLOW_HOME to a folder on another disk"
    else:
        fix = ""
    return Finding(where=HERE, what="disk", ok=not fix, found=space, fix=fix)


def _configs(folder: Path) -> Finding:
    suites = sorted(path.stem for path in (folder / "suites").glob("*.yaml"))
    fix = "" if suites else "no suites/*.yaml: set TIPCFLOW_CONFIG_DIR to a folder that contains suites"
    return Finding(where=HERE, what="configs", ok=bool(suites), found=f"{folder}: {_many(len(suites))}", fix=fix)


def _many(suites: int) -> str:
    return counted(suites, "suite")


def _database(url: str) -> Finding:
    shown = safe_url(url)
    file = Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None
    if file is not None and not file.exists():
        return Finding(where=HERE, what="database", ok=True, found=f"{shown} (created by the first run)")
    from tipcflow.store import migrate

    try:
        revision = migrate.current(url)
    except TipcflowError as error:
        fix = error.hint or "start it, or fix TIPCFLOW_DATABASE_URL"
        return Finding(where=HERE, what="database", ok=False, found=error.message, fix=fix)
    ok = revision == migrate.head()
    state = f"{shown} has schema {revision or 'none'}"
    fix = "" if ok else f"this version of tipcflow requires {migrate.head()}; run `tipcflow db upgrade`"
    return Finding(where=HERE, what="database", ok=ok, found=state, fix=fix)


def _object_store(settings: Settings) -> Finding:
    """Whether the object store accepts, returns and removes an object."""
    from tipcflow.execute.objects.object_store import ObjectStore

    if settings.store is None:
        state = "none (TIPCFLOW_STORE): workers on other machines must share TIPCFLOW_HOME"
        return Finding(where=HERE, what="object store", ok=True, found=state)
    began = time.monotonic()
    try:
        ObjectStore(settings.store).probe(settings.home / "objects")
    except TipcflowError as error:
        fix = error.hint or "set TIPCFLOW_STORE, and the credentials of its service in the environment"
        return Finding(where=HERE, what="object store", ok=False, found=error.message, fix=fix)
    took_ms = (time.monotonic() - began) * 1000
    state = f"{settings.store}: an object was written, read and removed in {took_ms:.0f} ms"
    return Finding(where=HERE, what="object store", ok=True, found=state)
