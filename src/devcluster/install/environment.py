"""Python environments of the nodes, created once from the locked requirements and then reused."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from devcluster.install.wheels import add_autolog, may_have_autolog, require_wheel, wheel_env
from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import size
from tipcflow.install.installer import run_installer
from tipcflow.install.uv import base_python, require_uv, requirements_dir

# The wheel has 200 MB, unpacked with its dependencies 870 MB; both exist temporarily.
NEEDED_BYTES = 3 << 29
# Paddle 3.3.1 has wheels for these; Paddle 2.6.2 does not have one for the newest.
_OLDEST, _NEWEST = (3, 11), (3, 13)
_NEWEST_OF = {"node-ps": (3, 12)}
_STAMP, _AUTOLOG = ".tipcflow-complete", ".tipcflow-autolog"


def node_environment(home: Path, report: Callable[[str], None], *, kind: str = "node-cpu") -> Path:
    """Return the interpreter of the nodes' environment; create it if it is missing or its requirements changed.

    An environment without its stamp is incomplete (for example a killed installation) and is recreated. AutoLog is
    added to an environment with Paddle if TIPCFLOW_WHEEL_URL has it.

    Raises:
        ConfigError: TIPCFLOW_WHEEL_URL lacks a wheel that the environment needs.
        InfraError: no network, a missing package, no supported Python, or a full disk; the message names the
            cause.
    """
    folder = home / "envs" / kind
    autolog = requirements_dir() / "node-autolog.txt"
    if is_ready(home, kind) and not _lacks_autolog(folder, kind, autolog):
        return folder / "bin" / "python"
    requirements = requirements_dir() / f"{kind}.txt"
    require_wheel(kind, requirements)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Another start may be creating it: wait, then check again. Installers have a deadline.
    with FileLock(folder.parent / f"{kind}.lock", fallback_to_soft=False):
        if not is_ready(home, kind):
            (folder / _STAMP).unlink(missing_ok=True)
            _make(folder, requirements, home, report)
            (folder / _STAMP).write_text(_hash(requirements))
        if _lacks_autolog(folder, kind, autolog):
            python = folder / "bin" / "python"
            if add_autolog(require_uv(home, report), python, autolog, report):
                (folder / _AUTOLOG).write_text(_hash(autolog))
    return folder / "bin" / "python"


def _lacks_autolog(folder: Path, kind: str, requirements: Path) -> bool:
    """Return whether an environment can get AutoLog, and does not have the pinned one."""
    if kind != "node-cpu" or not requirements.is_file() or not may_have_autolog(requirements):
        return False
    try:
        return (folder / _AUTOLOG).read_text() != _hash(requirements)
    except OSError:
        return True


def check_environment(home: Path, kind: str) -> None:
    """Check that an environment exists or can be created, before anything is started.

    Raises:
        ConfigError: TIPCFLOW_WHEEL_URL lacks a wheel that the environment needs.
    """
    if not is_ready(home, kind):
        require_wheel(kind, requirements_dir() / f"{kind}.txt")


def is_ready(home: Path, kind: str = "node-cpu") -> bool:
    """Whether the environment is complete and matches the current requirements."""
    folder = home / "envs" / kind
    try:
        stamp = (folder / _STAMP).read_text()
    except OSError:
        return False
    return stamp == _hash(requirements_dir() / f"{kind}.txt") and os.access(folder / "bin" / "python", os.X_OK)


def _hash(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def _make(folder: Path, requirements: Path, home: Path, report: Callable[[str], None]) -> None:
    free = shutil.disk_usage(folder.parent).free
    if free < NEEDED_BYTES:
        raise InfraError(
            f"{folder} needs {size(NEEDED_BYTES)}, the disk has {size(free)} left",
            hint="free some disk space, or set TIPCFLOW_HOME to a folder on another disk",
        )
    uv = require_uv(home, report)
    python = _fitting_python(uv, _NEWEST_OF.get(folder.name, _NEWEST))
    report(f"creating the nodes' environment {folder} (about 900 MB, first run only)")
    run_installer(
        [str(uv), "venv", "--quiet", "--clear", "--no-python-downloads", "--python", python, str(folder)],
        what=f"the environment {folder.name}",
        folder=home,
        report=report,
    )

    def relay(line: str) -> None:
        # Hide the list of all packages.
        if not line.startswith((" + ", " - ")):
            report(line)

    # Bytecode is written now: steps with PYTHONDONTWRITEBYTECODE would compile Paddle again, for 3 s of CPU time.
    sync = [str(uv), "pip", "sync", "--require-hashes", "--compile-bytecode"]
    run_installer(
        [*sync, "--python", str(folder / "bin" / "python"), str(requirements)],
        what=f"the environment {folder.name}",
        folder=home,
        report=relay,
        env=wheel_env(),
    )


def _fitting_python(uv: Path, newest: tuple[int, int]) -> str:
    """Return an interpreter with Paddle wheels: the current one if supported, otherwise one found by uv."""
    if _OLDEST <= sys.version_info[:2] <= newest:
        return base_python()
    request = f">={_OLDEST[0]}.{_OLDEST[1]},<{newest[0]}.{newest[1] + 1}"
    result = subprocess.run(
        [str(uv), "python", "find", "--no-python-downloads", "--system", request],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if result.returncode:
        ours = ".".join(str(part) for part in sys.version_info[:2])
        raise InfraError(
            f"Paddle has no wheel for Python {ours}, and there is no other Python on this machine",
            hint=f"install a Python from 3.{_OLDEST[1]} to 3.{newest[1]} in addition",
        )
    return result.stdout.strip()
