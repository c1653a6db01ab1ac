"""The process table: who belongs to which job, and how they are ended."""

from __future__ import annotations

import os
import re
import signal
import time
from typing import AbstractSet, Callable, Iterable, Iterator, NamedTuple

from .files import Json, job_id

UNKILLABLE_S = 20.0  # a process that SIGKILL has not ended after so long hangs in the kernel
PAGE, HZ = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Proc(NamedTuple):
    """A process: `cpu` in seconds with its reaped children, `rss` in bytes, `env` as it was started."""

    pid: int
    ppid: int
    cpu: float
    rss: int
    env: bytes

    def var(self, name: str) -> str:
        """An environment variable of the process, '' when it has none."""
        found = re.search(rb"(?:^|\0)" + name.encode() + rb"=([^\0]*)", self.env)
        return found.group(1).decode("utf-8", "surrogateescape") if found else ""


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
            yield Proc(int(entry), int(field[1]), cpu, int(field[21]) * PAGE, env)


def marked(wanted: dict[str, str]) -> Callable[[], list[Proc]]:
    """Finds all processes, but this one, that carry these variables."""

    def find() -> list[Proc]:
        return [
            proc
            for proc in scan({os.getpid()})
            if b"TIPCFLOW_" in proc.env and all(proc.var(name) == value for name, value in wanted.items())
        ]

    return find


def family(table: Iterable[Proc], parent: int, spec: Json) -> list[Proc]:
    """Those of the table that descend from `parent`, or carry the job's marks."""
    wanted = marks(spec)
    ours: list[Proc] = []
    rest: list[Proc] = []
    for proc in table:
        mine = b"TIPCFLOW_" in proc.env and all(proc.var(name) == value for name, value in wanted.items())
        (ours if mine or proc.ppid == parent else rest).append(proc)
    pids, before = {proc.pid for proc in ours}, -1
    while len(pids) != before:
        before = len(pids)
        for proc in [proc for proc in rest if proc.ppid in pids and proc.pid not in pids]:
            pids.add(proc.pid)
            ours.append(proc)
    return ours


def end_all(
    find: Callable[[], list[Proc]], *, grace_s: float, kill_after_s: float, give_up_s: float = UNKILLABLE_S
) -> dict[int, str]:
    """TERM, later KILL, everything that `find` finds, until it finds nothing.

    Args:
        grace_s: seconds that they may take to end by themselves.
        kill_after_s: seconds from TERM to KILL.
        give_up_s: seconds from KILL until what is still there is left alone.

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
        for proc in found if passed >= 0 else []:
            if sent.get(proc.pid) != name:
                sent[proc.pid] = name
                try:
                    os.kill(proc.pid, getattr(signal, name))
                except OSError:
                    pass
        time.sleep(0.01)
