"""The nodes' CPU Paddle environment: made once from the locked requirements, found at once afterwards."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from devcluster.install.install import run_installer
from devcluster.install.uv import base_python, require_uv, requirements_dir
from tipcflow.domain import InfraError

# The wheel is 200 MB, unpacked with its dependencies 870 MB; both exist for a while.
NEEDED_BYTES = 1_600_000_000
# Paddle 3.3.1 has wheels for these.
_OLDEST, _NEWEST = (3, 11), (3, 13)
_STAMP = ".tipcflow-complete"


def node_environment(home: Path, report: Callable[[str], None], *, kind: str = "node-cpu") -> Path:
    """The interpreter of the nodes' environment, which is made when it is missing or its requirements changed.

    An environment without its stamp is not complete (a killed installation, for example) and is made again.

    Raises:
        InfraError: no network, no such package, no fitting Python, or a full disk; each said clearly.
    """
    folder = home / "envs" / kind
    if is_ready(home, kind):
        return folder / "bin" / "python"
    requirements = requirements_dir() / f"{kind}.txt"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{kind}.lock").open("w") as lock:
        # Another start may be making it: wait, then look again. It ends, for installers have a deadline.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_ready(home, kind):
            (folder / _STAMP).unlink(missing_ok=True)
            _make(folder, requirements, home, report)
            (folder / _STAMP).write_text(_hash(requirements))
    return folder / "bin" / "python"


def is_ready(home: Path, kind: str = "node-cpu") -> bool:
    """Whether the environment was made to its end, from the requirements as they are now."""
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
            f"{folder} needs {NEEDED_BYTES / 1e9:.1f} GB, the disk has {free / 1e9:.1f} GB left",
            hint="free some room, or set TIPCFLOW_HOME to a folder on another disk",
        )
    uv = require_uv(home, report)
    python = _fitting_python(uv)
    report(f"making the nodes' environment {folder} (about 900 MB, once)")
    run_installer(
        [str(uv), "venv", "--quiet", "--clear", "--no-python-downloads", "--python", python, str(folder)],
        what=f"the environment {folder.name}",
        folder=home,
        report=report,
    )

    def tell(line: str) -> None:
        # The list of all packages is of no interest.
        if not line.startswith((" + ", " - ")):
            report(line)

    sync = [str(uv), "pip", "sync", "--require-hashes", "--python", str(folder / "bin" / "python")]
    run_installer([*sync, str(requirements)], what=f"the environment {folder.name}", folder=home, report=tell)


def _fitting_python(uv: Path) -> str:
    """An interpreter that Paddle has wheels for: ours if it fits, else one that uv finds on this machine."""
    if _OLDEST <= sys.version_info[:2] <= _NEWEST:
        return base_python()
    request = f">={_OLDEST[0]}.{_OLDEST[1]},<{_NEWEST[0]}.{_NEWEST[1] + 1}"
    found = subprocess.run(
        [str(uv), "python", "find", "--no-python-downloads", "--system", request],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if found.returncode:
        ours = ".".join(str(part) for part in sys.version_info[:2])
        raise InfraError(
            f"Paddle has no wheel for Python {ours}, and there is no other Python on this machine",
            hint="install Python 3.11, 3.12 or 3.13 beside it",
        )
    return found.stdout.strip()
