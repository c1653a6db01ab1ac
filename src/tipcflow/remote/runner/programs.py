"""Runs external programs with a time limit and returns their output."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` and `subprocess` take longer to import than most calls of the runner
if TYPE_CHECKING:
    from typing import Mapping

NO_VARIABLES: dict[str, str] = {}
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_program(name: str, *folders: str) -> str:
    """Return the path of a program: in these folders, on this process's PATH or in the system's; '' if not
    found."""
    import shutil  # takes longer than most jobs without such a program

    path = ":".join([*folders, os.environ.get("PATH", ""), SYSTEM_PATH])
    return shutil.which(name, path=path) or ""


def unmarked_environment() -> dict[str, str]:
    """Return this process's environment without a job's marks: a process started with it does not belong to the
    job."""
    ours = ("TIPCFLOW_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def run_program(
    command: list[str], seconds: float, env: Mapping[str, str] = NO_VARIABLES
) -> tuple[int | None, str]:
    """Return (exit code, stdout and stderr); the code is None if the program exceeds the time limit or cannot
    be started.

    After its end was requested, the process is not waited for: a process that hangs in a driver cannot be
    ended.

    Args:
        env: variables in addition to this process's own.
    """
    import subprocess

    try:
        process = subprocess.Popen(
            command, env={**unmarked_environment(), **env},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        return None, f"{command[0]}: {error.strerror}"
    try:
        data = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return None, f"{os.path.basename(command[0])} did not respond within {seconds:g} s"
    return process.returncode, data.decode("utf-8", "replace")
