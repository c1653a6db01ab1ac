"""`make install` on machines that lack something: one clear message, exit code 2."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[4]


def install(tmp_path: Path, python3: str) -> subprocess.CompletedProcess[str]:
    """tools/install.sh in a copy of the clone, where python3 is that shell script and nothing else is Python."""
    clone, tools = tmp_path / "clone", tmp_path / "bin"
    for folder in (clone / "tools", tools):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "install.sh", clone / "tools")
    shutil.copytree(ROOT / "requirements", clone / "requirements")
    for name in ("bash", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or "")
    (tools / "python3").write_text(f"#!/bin/bash\n{python3}\n")
    (tools / "python3").chmod(0o755)
    return subprocess.run(
        [clone / "tools" / "install.sh"],
        env={"PATH": str(tools), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_older_python_is_refused_with_a_remedy(tmp_path: Path) -> None:
    done = install(tmp_path, 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    assert done.returncode == 2
    assert done.stderr == (
        "error: Python 3.11 or newer is needed, found: Python 3.9.2\n"
        "  hint: install python3.11 or newer with pip, or name it: make install PYTHON=/path/to/python3.12\n"
    )


def test_python_without_pip_and_uv_is_reported(tmp_path: Path) -> None:
    done = install(tmp_path, 'if [ "$2" = pip ]; then exit 1; fi')
    assert done.returncode == 2
    assert "has no pip\n  hint: install it (Debian: apt-get install python3-pip)" in done.stderr


def test_pip_that_reaches_no_index(tmp_path: Path) -> None:
    done = install(tmp_path, 'if [ "$3" = install ]; then echo no network >&2; exit 1; fi')
    assert done.returncode == 2
    assert done.stderr.endswith(
        "error: pip could not install uv\n"
        "  hint: check the network, a proxy (HTTPS_PROXY) or your index (PIP_INDEX_URL)\n"
    )


def test_make_help_lists_every_target_with_its_purpose() -> None:
    done = subprocess.run(["make", "-C", ROOT, "--no-print-directory"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) <= 20
    assert all(len(line.split(maxsplit=2)) == 3 for line in lines)
    assert {"demo", "test", "install"} <= {line.split()[1] for line in lines}
