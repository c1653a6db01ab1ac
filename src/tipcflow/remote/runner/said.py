"""Output of external programs, with a time limit."""

from __future__ import annotations

import os
import subprocess
from typing import Mapping

NOTHING: dict[str, str] = {}
PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def tool(name: str, *folders: str) -> str:
    """Where a program is: in these folders, on this process's PATH or in the system's; '' when nowhere."""
    import shutil  # takes longer than most jobs that need no tool may

    path = ":".join([*folders, os.environ.get("PATH", ""), PLACES])
    return shutil.which(name, path=path) or ""


def unmarked() -> dict[str, str]:
    """This process's environment without a job's marks: what is started with it is no process of the job."""
    ours = ("TIPCFLOW_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def said(command: list[str], seconds: float, env: Mapping[str, str] = NOTHING) -> tuple[int | None, str]:
    """(exit code, stdout and stderr); the code is None when it did not answer in time or cannot be started.

    Args:
        env: variables on top of this process's own.

    It is not waited for after its end was asked for: a process that hangs in a driver cannot be ended.
    """
    try:
        process = subprocess.Popen(
            command, env={**unmarked(), **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        return None, f"{command[0]}: {error.strerror}"
    try:
        data = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return None, f"{os.path.basename(command[0])} did not answer within {seconds:g} s"
    return process.returncode, data.decode("utf-8", "replace")
