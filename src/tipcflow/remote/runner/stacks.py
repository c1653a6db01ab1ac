"""Python stacks of running processes: through py-spy if installed, otherwise through a signal."""

from __future__ import annotations

import os
import re
import threading
import time

from .files import open_regular
from .processes import Proc
from .programs import find_program, run_program
from .stack_signal import NUMBER, handles_signal

MOST = 32  # limit of processes
ONE_S, ALL_S, RESPONSE_S = 4.0, 12.0, 2.0  # limits of one py-spy call, all calls, the response to a signal
QUIET_S = 0.15  # a response is complete after this long without another byte
SIZE = 256 * 1024  # limit of one process's stacks, bytes
STACK = re.compile(r"^(?:(?:Current t|T)hread 0x[0-9a-f]+ .*|  File .*|  \.\.\.)$", re.M)


def is_python(proc: Proc) -> bool:
    """Return whether the process runs a Python interpreter, by the name of its program."""
    try:
        return bool(re.match(r"(python|pypy)", os.path.basename(os.readlink(f"/proc/{proc.pid}/exe"))))
    except OSError:
        return False


def stacks(procs: list[Proc], logs: list[str]) -> dict[int, tuple[str, str]]:
    """Return pid -> (method, text) of the Python processes whose stacks are available.

    Args:
        procs: the most important processes first.
        logs: paths of the logs that may contain the response of a process that writes to a pipe.
    """
    wanted = [proc for proc in procs if is_python(proc)][:MOST]
    found, until = {}, time.monotonic() + ALL_S
    for proc in wanted:
        # Next to the process's own interpreter, where an environment installs it.
        beside = (
            os.path.dirname(os.readlink(f"/proc/{proc.pid}/exe")) if os.path.exists(f"/proc/{proc.pid}") else ""
        )
        virtual = os.path.join(proc.var("VIRTUAL_ENV"), "bin")
        spy = find_program("py-spy", beside, virtual, *proc.var("PATH").split(":"))
        if spy and time.monotonic() < until:
            code, text = run_program([spy, "dump", "--pid", str(proc.pid)], ONE_S)
            if code == 0 and text.strip():
                found[proc.pid] = ("py-spy", text[:SIZE])
    found.update(request_stacks([proc.pid for proc in wanted if proc.pid not in found], logs))
    return found


def spy_for(proc: Proc) -> str:
    """Return the path of py-spy: next to the process's own interpreter, on its PATH or this process's; '' if
    not found."""
    try:
        with open(f"/proc/{proc.pid}/cmdline", "rb") as handle:
            program = os.fsdecode(handle.read().split(b"\0")[0])
    except OSError:
        return ""
    return find_program(
        "py-spy", *[os.path.dirname(program)][: program.startswith("/")], *proc.var("PATH").split(":")
    )


def request_stacks(pids: list[int], logs: list[str]) -> dict[int, tuple[str, str]]:
    """Signal processes to write their stacks to stderr, and read the response there.

    Processes that write to the same file are signalled one after the other, different files in parallel.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for pid in pids:
        if handles_signal(pid):
            groups.setdefault(output_of(pid), []).append(pid)
    found: dict[int, tuple[str, str]] = {}

    def group(members: list[int]) -> None:
        for pid in members:
            text = request_stack(pid, logs)
            if text:
                found[pid] = ("signal", text)

    threads = [threading.Thread(target=group, args=(members,), daemon=True) for members in groups.values()]
    until = time.monotonic() + ALL_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def output_of(pid: int) -> tuple[int, int]:
    """Return the file of a process's stderr; the same value for all processes that write to pipes."""
    try:
        stat = os.stat(f"/proc/{pid}/fd/2")
    except OSError:
        return 0, 0
    return (stat.st_dev, stat.st_ino) if os.path.isfile(f"/proc/{pid}/fd/2") else (0, 0)


def request_stack(pid: int, logs: list[str]) -> str:
    """Return the response of a process to the signal, '' without one: a stopped process cannot respond."""
    places = [f"/proc/{pid}/fd/2"] if os.path.isfile(f"/proc/{pid}/fd/2") else logs
    before = {place: size_of(place) for place in places}
    try:
        os.kill(pid, NUMBER)
    except OSError:
        return ""
    begin = changed = time.monotonic()
    sizes = dict(before)
    while True:
        time.sleep(0.02)
        now = time.monotonic()
        last, sizes = sizes, {place: size_of(place) for place in places}
        changed = now if sizes != last else changed
        if (sizes != before and now - changed > QUIET_S) or now - begin > RESPONSE_S:
            break
    for place in places:
        if sizes[place] > before[place]:
            try:
                with open_regular(place) as handle:
                    handle.seek(before[place])
                    text = handle.read(min(SIZE, sizes[place] - before[place])).decode("utf-8", "replace")
            except OSError:
                continue
            lines = STACK.findall(text)  # the process may write other output in between
            if lines:
                return "\n".join(lines) + "\n"
    return ""


def size_of(path: str) -> int:
    """Return the size of a file in bytes, 0 if it does not exist."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
