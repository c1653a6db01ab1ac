"""Runner of installers (uv, pip, apt-get): shows their output and explains failures in one line."""

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit

DEADLINE_S = 1800.0
_END_S = 10.0


class InstallFailure(StrEnum):
    """Why an installer failed."""

    DISK_FULL = "the disk is full"
    OTHER_HASH = "a downloaded file is not the one whose hash is recorded"
    UNREACHABLE = "the package index cannot be reached"
    OTHER_PYTHON = "a pinned package does not exist for this Python"
    NOT_IN_INDEX = "the package index does not have a pinned package"
    NO_PIP = "this Python has no pip"
    NOT_WRITABLE = "a folder is not writable"
    UNKNOWN = ""


class InstallError(InfraError):
    """An installer failed.

    Attributes:
        failure: why.
    """

    def __init__(self, message: str, *, failure: InstallFailure, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.failure = failure


# Installer output -> (cause, fix). First match wins.
_FAILURES = [
    (
        r"No space left on device|os error 28|Disk quota exceeded",
        InstallFailure.DISK_FULL,
        "free some disk space below {folder}, or set TIPCFLOW_HOME to a folder on another disk",
    ),
    (
        r"(?i:hash mismatch)|do not match the hash|THESE PACKAGES DO NOT MATCH",
        InstallFailure.OTHER_HASH,
        "retry; if it persists, do not install: the package index or a proxy changes files",
    ),
    (
        r"dns error|error sending request|Failed to fetch|Could not connect|[Cc]onnection refused|timed out|"
        r"Temporary failure|Network is unreachable|NewConnectionError|Could not resolve|ProxyError",
        InstallFailure.UNREACHABLE,
        "check the network, a proxy (HTTPS_PROXY) or your index (UV_DEFAULT_INDEX, PIP_INDEX_URL)",
    ),
    (
        r"no wheels? with a matching|not compatible with|requires a different Python|Requires-Python",
        InstallFailure.OTHER_PYTHON,
        "use Python 3.11, 3.12 or 3.13",
    ),
    (
        r"No matching distribution|was not found in the package registry|no version[s]? of|No solution found",
        InstallFailure.NOT_IN_INDEX,
        "check which index is set (UV_DEFAULT_INDEX, PIP_INDEX_URL)",
    ),
    (r"No module named pip", InstallFailure.NO_PIP, "install pip (Debian: apt-get install python3-pip), or uv"),
    (r"[Pp]ermission denied|os error 13", InstallFailure.NOT_WRITABLE, "see who owns {folder}"),
]


def explain(output: str, *, what: str, folder: Path) -> InstallError:
    """Return the error for an installer's output; for an unknown failure, with its last lines."""
    for pattern, failure, hint in _FAILURES:
        if re.search(pattern, output):
            message = f"{what} cannot be installed: {failure.value}"
            return InstallError(message, failure=failure, hint=hint.format(folder=folder))
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()][-3:]
    message = f"{what} cannot be installed: {' / '.join(lines) or 'no message'}"
    return InstallError(message, failure=InstallFailure.UNKNOWN)


def run_installer(
    argv: Sequence[str],
    *,
    what: str,
    folder: Path,
    report: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Run an installer until its end; Ctrl-C ends it with all its children.

    Args:
        what: name of the installed thing, for messages.
        folder: installation folder, for messages.
        report: receives each line of its output.

    Raises:
        InfraError: the installer is missing, failed, or exceeded the deadline.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=dict(env) if env is not None else None,
        )
    except FileNotFoundError as error:
        raise InfraError(f"{argv[0]} is not installed on this machine") from error
    late = threading.Event()

    def give_up() -> None:
        late.set()
        _end(process)

    timer = threading.Timer(deadline_s, give_up)
    timer.start()
    lines: deque[str] = deque(maxlen=200)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            report(line.rstrip())
        code = process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise InfraError(f"{what} cannot be installed: it took longer than {limit(deadline_s)}")
    if code:
        raise explain("".join(lines), what=what, folder=folder)


def _end(process: "subprocess.Popen[str]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
            return
