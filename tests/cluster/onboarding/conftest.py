"""The command `tipcflow` as a user types it in an empty folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("tipcflow"))
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(environ: dict[str, str], tmp_path: Path) -> Command:
    """`command("local", "up")`: run to the end without a terminal; the test's `environ` is the environment."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        # A keeper that inherited a pipe would make this call wait for its end.
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=environ,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )

    return run
