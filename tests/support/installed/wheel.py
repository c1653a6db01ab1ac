"""Builds the wheel and environments that have it; offline where uv's cache has what `make install` installed."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tipcflow.install.uv import find_uv

ROOT = Path(__file__).parents[3]
LOCKED = ROOT / "requirements" / "scheduler.txt"


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this clone."""
    lock = str(ROOT / "requirements" / "build.txt")
    _uv("build", "--wheel", "--build-constraints", lock, "--out-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("tipcflow-*.whl")
    return wheel


def install(folder: Path, packages: Sequence[str], *, compiled: bool = False) -> Path:
    """Create an environment with these packages, at the locked versions; returns its Python.

    Args:
        compiled: whether bytecode is written now; otherwise every process compiles what it imports first.
    """
    _uv("venv", "--no-python-downloads", "--python", sys.executable, str(folder))
    python = folder / "bin" / "python"
    compile_now = ["--compile-bytecode"] if compiled else []
    _uv("pip", "install", "--python", str(python), "--constraints", str(LOCKED), *compile_now, *packages)
    return python


def stub() -> str:
    """The DAG file that the documentation has users add."""
    page = (ROOT / "docs" / "tutorial" / "existing-airflow.md").read_text()
    return page.partition("```python\n")[2].partition("```")[0]


def _uv(*arguments: str) -> None:
    uv = find_uv(Path(os.environ.get("TIPCFLOW_HOME", ROOT / ".tipcflow")))
    assert uv, "make install installs uv"
    messages = ""
    for extra in (["--offline"], []):
        done = subprocess.run([uv, *arguments, *extra], cwd="/", capture_output=True, text=True)
        if done.returncode == 0:
            return
        messages += done.stderr
    raise AssertionError(f"uv {' '.join(arguments)}\n{messages[-3000:]}")
