"""Child processes of the set-up, with deadlines and clear errors, isolated from the terminal's Ctrl-C."""

import subprocess
from collections.abc import Sequence

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit

DEADLINE_S = 15.0


def call(
    argv: Sequence[str], *, stdin: str = "", check: bool = True, deadline_s: float = DEADLINE_S
) -> subprocess.CompletedProcess[str]:
    """Run a command until its end.

    The command has its own process group: Ctrl-C reaches only this process, which then shuts down cleanly.

    Raises:
        InfraError: the command is missing, exceeded the deadline, or (with `check`) failed.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
            process_group=0,
        )
    except FileNotFoundError as error:
        raise InfraError(f"{argv[0]} is not installed on this machine", hint=_package_hint(argv[0])) from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"{' '.join(argv)} took longer than {limit(deadline_s)}") from error
    if check and done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise InfraError(f"{' '.join(argv)} failed: {lines[-1]}")
    return done


def _package_hint(program: str) -> str:
    packages = {"ip": "iproute2", "ssh-keygen": "openssh-client", "unshare": "util-linux", "nsenter": "util-linux"}
    return f"install the package {packages[program]}" if program in packages else ""
