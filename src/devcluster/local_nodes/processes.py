"""Processes of this machine from /proc: start times, children, and the processes of one local node."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit

# The listening sshd, and its processes per connection (their names depend on the version).
_SSHD = ("sshd", "sshd-session", "sshd-auth")


class Process(NamedTuple):
    """A process of a node.

    Attributes:
        pid: in the node's PID namespace.
        cmdline: its arguments, joined by spaces.
    """

    pid: int
    cmdline: str


class Member(NamedTuple):
    """A process on this machine; `ended` for a zombie."""

    pid: int
    parent: int
    name: str
    ended: bool

    @property
    def is_sshd(self) -> bool:
        """Whether it is the OpenSSH server or one of its connections, not a process started by them."""
        return self.name in _SSHD


def start_time(pid: int) -> int:
    """Return a process's start time in clock ticks since boot, 0 if missing; a pid alone may be reused."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def started_at(pid: int) -> float | None:
    """Return the Unix time at which a process started, None if missing."""
    ticks = start_time(pid)
    boot = [line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime ")]
    return int(boot[0].split()[1]) + ticks / os.sysconf("SC_CLK_TCK") if ticks and boot else None


def kill_if_same(pid: int, started: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process unless its pid has been reused."""
    if pid > 0 and started and start_time(pid) == started:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def children(parent: int) -> list[int]:
    """Return the pids of a process's children."""
    return [seen.pid for seen in everything() if seen.parent == parent and not seen.ended]


def in_pid_namespace(init: int) -> list[Member]:
    """Return the processes in the PID namespace of `init`, its first process, except `init`."""
    members = []
    with contextlib.suppress(OSError):
        namespace = _pid_namespace(init)
        for seen in everything():
            # A process may end during the scan.
            with contextlib.suppress(OSError):
                if seen.pid != init and _pid_namespace(seen.pid) == namespace:
                    members.append(seen)
    return members


def below(init: int, marker: str) -> list[Member]:
    """Return descendants of `init`, and processes with `marker` in the environment (started without sshd)."""
    family = {init}
    seen = list(everything())
    grew = True
    while grew:
        more = {member.pid for member in seen if member.parent in family} - family
        family |= more
        grew = bool(more)
    return [
        member
        for member in seen
        if member.pid not in (init, os.getpid()) and (member.pid in family or has_marker(member.pid, marker))
    ]


def describe(members: list[Member]) -> list[Process]:
    """Return the living members except those of sshd, with the node's pids."""
    processes = []
    for member in members:
        with contextlib.suppress(OSError):
            if not member.ended and not member.is_sshd:
                processes.append(Process(_pid_inside(member.pid), _cmdline(member.pid) or f"[{member.name}]"))
    return sorted(processes)


def has_marker(pid: int, marker: str) -> bool:
    """Whether a process was started with an environment entry that starts with `marker`."""
    try:
        return f"\0{marker}".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def marked(marker: str) -> list[int]:
    """Return the pids of processes with `marker` in their environment."""
    return [seen.pid for seen in everything() if not seen.ended and has_marker(seen.pid, marker)]


def wait_until(condition: Callable[[], bool], what: str, *, deadline_s: float) -> None:
    """Wait for a condition.

    Args:
        what: the failure as text without the time limit, such as `sshd did not end`.

    Raises:
        InfraError: the condition is still false at the deadline; the message is `what` and the time limit.
    """
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise InfraError(f"{what} within {limit(deadline_s)}")
        time.sleep(0.01)


def everything() -> Iterator[Member]:
    """Yield all processes of this machine."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_text()
        except OSError:
            continue
        head, _, tail = stat.rpartition(")")
        fields = tail.split()
        yield Member(int(entry.name), int(fields[1]), head.partition("(")[2], fields[0] in "ZX")


def _pid_namespace(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116


def _pid_inside(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def _cmdline(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
