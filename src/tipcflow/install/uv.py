"""Location of uv: found here, or installed with pip at the version and hashes of requirements/uv.txt."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tipcflow.domain import InfraError
from tipcflow.install.installer import run_installer


def requirements_dir() -> Path:
    """Return the clone's requirements folder.

    Raises:
        InfraError: tipcflow was not installed from a clone.
    """
    folder = Path(__file__).resolve().parents[3] / "requirements"
    if not (folder / "node-cpu.txt").is_file():
        raise InfraError(
            "the requirements files are not here: tipcflow was not installed from a clone",
            hint="clone the repository and run `make install` in it",
        )
    return folder


def find_uv(home: Path) -> Path | None:
    """Return the uv of this home (installed by `make install`), of this Python environment, or on PATH."""
    for candidate in (home / "uv" / "bin" / "uv", Path(sys.executable).with_name("uv")):
        if os.access(candidate, os.X_OK):
            return candidate
    program = shutil.which("uv")
    return Path(program) if program else None


def base_python() -> str:
    """Return the interpreter from which the running environment was created."""
    return getattr(sys, "_base_executable", "") or sys.executable


def require_uv(home: Path, report: Callable[[str], None]) -> Path:
    """Return uv; install it below `home` with pip if missing.

    Raises:
        InfraError: neither uv nor pip is available, or the package index is unreachable.
    """
    uv = find_uv(home)
    if uv:
        return uv
    report("installing uv with pip")
    target = home / "uv"
    argv = [base_python(), "-m", "pip", "install", "--quiet", "--require-hashes", "--upgrade"]
    run_installer(
        [*argv, "--target", str(target), "-r", str(requirements_dir() / "uv.txt")],
        what="uv",
        folder=home,
        report=report,
    )
    return target / "bin" / "uv"
