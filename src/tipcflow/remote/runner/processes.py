"""Process table: finds and ends the processes of jobs."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import AbstractSet, Callable, Iterator, NamedTuple

from .files import Json, job_id

MARK_GUARD = "TIPCFLOW_GUARD"  # in the environment of a guard, which is not a process of its job
UNKILLABLE_S = 20.0  # a process that survives SIGKILL for this long hangs in the kernel
PAGE, HZ = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Proc(NamedTuple):
    """A process: `cpu` in seconds including its reaped children, `rss` in bytes, `env` as at its start, `sid`
    its session, `stopped` by SIGSTOP or a terminal, `start` in ticks since the node's boot: pid and start
    together are unique."""

    pid: int
    ppid: int
    cpu: float
    rss: int
    env: bytes
    start: int = 0
    sid: int = 0
    stopped: bool = False

    def var(self, name: str) -> str:
        """Return an environment variable of the process, '' if it has none."""
        found = re.search(rb"(?:^|\0)" + name.encode() + rb"=([^\0]*)", self.env)
        return found.group(1).decode("utf-8", "surrogateescape") if found else ""


def describe_process(proc: Proc) -> str:
    """Describe a process for users: pid, command, user."""
    return f"{proc.pid} ({command_of(proc.pid)[:60] or 'no command'}, user {user_of(proc.pid)})"


def command_of(pid: int) -> str:
    """Return the start of a process's command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return handle.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return ""


def name_of(pid: int) -> str:
    """Return the name of a process's program, at most 15 characters; '' if it has ended."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as handle:
            return handle.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def user_of(pid: int) -> str:
    """Return the user of a process, '' if it has ended."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return ""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def marks(spec: Json) -> dict[str, str]:
    """Return the environment variables that identify a job's processes."""
    return {"TIPCFLOW_WORKSPACE": spec["workspace"], "TIPCFLOW_JOB": job_id(spec), "TIPCFLOW_NODE": spec["node"]}


def scan(skip: AbstractSet[int] = frozenset()) -> Iterator[Proc]:
    """Yield every living process that is not in `skip`; a process of another user has no environment here."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in skip:
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as handle:
                stat = handle.read()
        except OSError:
            continue  # the process has just ended, or this node hides other users' processes
        try:
            with open(f"/proc/{entry}/environ", "rb") as handle:
                env = handle.read()
        except PermissionError:
            env = b""
        except OSError:
            continue
        field = stat[stat.rindex(b")") + 2 :].split()
        if field[0] not in (b"Z", b"X"):
            cpu = sum(int(ticks) for ticks in field[11:15]) / HZ
            start, sid = int(field[19]), int(field[3])
            yield Proc(int(entry), int(field[1]), cpu, int(field[21]) * PAGE, env, start, sid, field[0] == b"T")


def do_nothing() -> None:
    """Default for `kill`: nothing except single signals."""


def end_all(
    find: Callable[[], list[Proc]],
    *,
    grace_s: float,
    kill_after_s: float,
    give_up_s: float = UNKILLABLE_S,
    kill: Callable[[], None] = do_nothing,
) -> dict[int, str]:
    """Send TERM, later KILL, to all processes that `find` returns, until it returns none.

    Args:
        grace_s: seconds for the processes to end by themselves.
        kill_after_s: seconds from TERM to KILL.
        give_up_s: seconds from KILL until remaining processes are left alone.
        kill: called with every SIGKILL, for processes that fork faster than they are found.

    Returns:
        pid -> the last signal sent.
    """
    begin = time.monotonic()
    sent: dict[int, str] = {}
    while True:
        found, passed = find(), time.monotonic() - begin - grace_s
        if not found or passed > kill_after_s + give_up_s:
            return sent
        name = "SIGKILL" if passed >= kill_after_s else "SIGTERM"
        if name == "SIGKILL":
            kill()
        for proc in found if passed >= 0 else []:
            if sent.get(proc.pid) != name:
                sent[proc.pid] = name
                try:
                    os.kill(proc.pid, getattr(signal, name))
                except OSError:
                    pass
        time.sleep(0.01)
