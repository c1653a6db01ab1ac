"""The process table: who belongs to which job, and how they are ended."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import AbstractSet, Callable, Iterator, NamedTuple

from .files import Json, job_id

MARK_GUARD = "TIPCFLOW_GUARD"  # in the environment of a guard, which is no process of its job
UNKILLABLE_S = 20.0  # a process that survives SIGKILL for this long hangs in the kernel
PAGE, HZ = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Proc(NamedTuple):
    """A process: `cpu` in seconds with its reaped children, `rss` in bytes, `env` as it was started, `sid` its
    session, `stopped` by SIGSTOP or a terminal, `start` in ticks since the node's boot: no two processes have both
    pid and start in common."""

    pid: int
    ppid: int
    cpu: float
    rss: int
    env: bytes
    start: int = 0
    sid: int = 0
    stopped: bool = False

    def var(self, name: str) -> str:
        """An environment variable of the process, '' when it has none."""
        found = re.search(rb"(?:^|\0)" + name.encode() + rb"=([^\0]*)", self.env)
        return found.group(1).decode("utf-8", "surrogateescape") if found else ""


def words(proc: Proc) -> str:
    """A process as a user looks for it: pid, command, user."""
    return f"{proc.pid} ({command_of(proc.pid)[:60] or 'no command'}, user {user_of(proc.pid)})"


def command_of(pid: int) -> str:
    """A process's command line, its beginning."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as handle:
            return handle.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return ""


def user_of(pid: int) -> str:
    """Whose process it is, '' when it is gone."""
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
    """The variables by which a job's processes are found, wherever they went."""
    return {"TIPCFLOW_WORKSPACE": spec["workspace"], "TIPCFLOW_JOB": job_id(spec), "TIPCFLOW_NODE": spec["node"]}


def scan(skip: AbstractSet[int] = frozenset()) -> Iterator[Proc]:
    """Every living process that is not in `skip`; another user's comes without its environment."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in skip:
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as handle:
                stat = handle.read()
        except OSError:
            continue  # it has just ended, or this node hides other users' processes
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


def nothing() -> None:
    """What is done beside single signals where there is nothing to do."""


def end_all(
    find: Callable[[], list[Proc]],
    *,
    grace_s: float,
    kill_after_s: float,
    give_up_s: float = UNKILLABLE_S,
    kill: Callable[[], None] = nothing,
) -> dict[int, str]:
    """TERM, later KILL, everything that `find` finds, until it finds nothing.

    Args:
        grace_s: seconds that they may take to end by themselves.
        kill_after_s: seconds from TERM to KILL.
        give_up_s: seconds from KILL until what is still there is left alone.
        kill: called with every SIGKILL, for those that fork faster than they are found.

    Returns:
        pid -> the last signal that it was sent.
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
