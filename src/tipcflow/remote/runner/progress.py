"""Progress of a command according to its logs: size, silence, and last iteration."""

from __future__ import annotations

import glob
import os
import re
import time
from typing import Iterable

from .files import Json, is_replaced, open_regular
from .outputs import is_secret

POLL_S = 1.0
TRUST_S = 5.0  # a longer gap between two checks does not count as silence: the runner itself was stopped
TAIL = 8192  # bytes of a log that are searched for its last iteration
MOST = 64  # limit of logs of one command
LONGEST_S = 1800.0  # limit of the silence after which peers are queried again
LINE = 300  # limit of a last line, characters
# `Iter: 10/20`, `global_step: 10`, `step 10`, `batch 3`, and `[ 10/5005]` without a word.
ITERATION = re.compile(
    rb"\b(?:iters?|iterations?|global[_ ]?steps?|steps?|batch|batch[_ ]?id|mini-?batch)\b\W{0,3}(\d{1,12})\b"
    rb"|\[\s*(\d{1,12})/\d+\]",
    re.I,
)
EPOCH = re.compile(rb"\bepoch(?:[_ ]?id)?\W{0,4}(\d{1,9})\b", re.I)  # `Epoch 1/2`, `epoch: [1/2]`, `Epoch: [0]`
# A line of stacks that a process wrote into its log because evidence was collected.
STACK = re.compile(
    rb"(?:Current t|T)hread 0x[0-9a-f]+ |\s*File .+, line \d+|  \.\.\.$|Current thread's C stack trace|"
    rb"  Binary file \"|  <no Python frame>|  <truncated|Extension modules: "
)
# How such a line begins: the process writes each word by itself.
STACK_BEGINS = (
    b"Thread 0x", b"Current thread 0x", b"Current thread's C", b'  File "', b"  ...", b'  Binary file "',
    b"  <no Python", b"  <truncated", b"Extension modules: ",
)  # fmt: skip
LONGEST = 64 * 1024  # a longer line is not part of stacks, bytes


def point_of(data: bytes) -> tuple[int | None, int | None]:
    """Return (epoch, iteration) of the last iteration in a piece of log; None for what it does not contain.

    The epoch is the last one up to the end of the iteration's line: an epoch that is only announced has no
    iteration yet.
    """
    found = list(ITERATION.finditer(data))
    if not found:
        return None, None
    line_end = re.compile(rb"[\r\n]|$").search(data, found[-1].end())
    epochs = EPOCH.findall(data[: line_end.start() if line_end else len(data)])
    return int(epochs[-1]) if epochs else None, int(found[-1][1] or found[-1][2])


def iteration_of(data: bytes) -> int | None:
    """Return the last iteration in a piece of log, None if it contains none."""
    return point_of(data)[1]


def end_of(path: str, size: int = TAIL) -> bytes:
    """Return the last bytes of a file, empty if it cannot be read."""
    try:
        with open_regular(path) as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - size))
            return handle.read(size)
    except OSError:
        return b""


def last_line(path: str) -> str:
    """Return the start of the last line that is neither empty nor part of stacks."""
    lines = [line for line in re.split(rb"[\r\n]+", end_of(path)) if line.strip() and not STACK.match(line)]
    return lines[-1].decode("utf-8", "replace").strip()[:LINE] if lines else ""


def is_stack(line: bytes, *, complete: bool = True) -> bool:
    """Return whether a line is empty or part of stacks; of an incomplete line, whether it may become that."""
    if not line.strip() or STACK.match(line):
        return True
    return not complete and any(line.startswith(begin) or begin.startswith(line) for begin in STACK_BEGINS)


def grew_by_stacks(path: str, begin: int, end: int) -> bool:
    """Return whether a file contains nothing but stacks and empty lines between two positions.

    The first of its lines may have begun before, with or without an end of the line above it.
    """
    try:
        with open_regular(path) as handle:
            start = max(0, begin - TAIL)
            handle.seek(start)
            before = re.split(rb"[\r\n]", handle.read(begin - start))[-1]
            while handle.tell() < end:
                piece = handle.readline(LONGEST)
                if not piece:
                    return False  # truncated meanwhile
                lines = re.split(rb"[\r\n]", piece)
                for number, line in enumerate(lines):
                    complete = number < len(lines) - 1
                    if not is_stack(line, complete=complete) and not is_stack(before + line, complete=complete):
                        return False
                    before = b""
    except OSError:
        return False
    return True


class Log:
    """One log.

    Attributes:
        idle_s: seconds since the last growth by anything but stacks.
        iteration: the last iteration in the log, in `epoch`; `moves` counts how often it changed.
        key: device and inode.
    """

    def __init__(self, path: str, stat: os.stat_result) -> None:
        self.path, self.key = path, (stat.st_dev, stat.st_ino)
        self.size, self.idle_s, self.moves = stat.st_size, 0.0, 0
        self.epoch, self.iteration = point_of(end_of(path)) if stat.st_size else (None, None)

    def poll(self, passed: float) -> None:
        """Update after `passed` seconds: growth, or a restart of the log. Stacks do not count as growth."""
        try:
            stat = os.stat(self.path)
        except OSError:
            stat = None
        if stat is None or stat.st_size == self.size:
            self.idle_s += min(passed, TRUST_S)
            return
        same = (stat.st_dev, stat.st_ino) == self.key
        if same and stat.st_size > self.size and grew_by_stacks(self.path, self.size, stat.st_size):
            self.size, self.idle_s = stat.st_size, self.idle_s + min(passed, TRUST_S)
            return
        self.size, self.key, self.idle_s = stat.st_size, (stat.st_dev, stat.st_ino), 0.0
        epoch, iteration = point_of(end_of(self.path))
        if iteration is not None and iteration != self.iteration:
            self.iteration, self.moves = iteration, self.moves + 1
        # A suite may name the epoch only once, further above than the end that is read.
        self.epoch = self.epoch if epoch is None else epoch


class Progress:
    """The logs of the current command.

    Attributes:
        logs: name (relative to the suite's root, or to the job folder) -> log; the command's own comes
            first.
    """

    def __init__(self, folder: str, spec: Json) -> None:
        self.folder, self.root, self.patterns = folder, spec["root"], spec.get("progress") or []
        self.limit_s = float(spec.get("hang_s") or 0)
        self.logs: dict[str, Log] = {}
        self.old: dict[str, int] = {}  # path -> size of the log of an earlier attempt
        self.own, self.since_ns, self.polled_at = "", 0, time.monotonic()
        self.cleared, self.quiet_s = 0.0, self.limit_s

    def begin(self, own: str, since_ns: int) -> None:
        """Start with another command.

        Args:
            own: its log, relative to the job folder.
            since_ns: logs last written before this time belong to an earlier attempt.
        """
        self.own, self.since_ns, self.polled_at = own, since_ns, time.monotonic()
        self.logs, self.old = {}, {}
        self.cleared, self.quiet_s = 0.0, self.limit_s
        self.find()

    def candidates(self) -> Iterable[tuple[str, str]]:
        """Yield name and path of every file that may be a log."""
        yield self.own, os.path.join(self.folder, self.own)
        for pattern in self.patterns:
            for base in (self.root, self.folder):
                for path in sorted(glob.glob(os.path.join(glob.escape(base), pattern), recursive=True)):
                    yield os.path.relpath(path, base), path

    def find(self) -> None:
        """Add logs that exist by now."""
        known = {log.key for log in self.logs.values()}
        for name, path in self.candidates():
            if name in self.logs or len(self.logs) >= MOST or is_secret(path):
                continue
            try:
                stat = os.stat(path)
            except OSError:
                continue
            if name != self.own and stat.st_mtime_ns < self.since_ns // 10**9 * 10**9:
                if self.old.setdefault(path, stat.st_size) == stat.st_size:
                    continue  # clocks jump: a log that grows is not an old one
            # A log may have two names.
            if not is_replaced(path) and (stat.st_dev, stat.st_ino) not in known:
                self.logs[name] = Log(path, stat)
                known.add(self.logs[name].key)

    def poll(self) -> None:
        """Check all logs, once a second."""
        passed = time.monotonic() - self.polled_at
        if self.own and passed >= POLL_S:
            self.polled_at = time.monotonic()
            # The silence of a log that another program has replaced is not the silence of its rank.
            self.logs = {name: log for name, log in self.logs.items() if not is_replaced(log.path)}
            for log in self.logs.values():
                log.poll(passed)
            self.find()

    def summary(self) -> Json:
        """Return name -> size in bytes, seconds of silence, last iteration and its epoch."""
        return {
            name: {
                "size": log.size, "idle_s": round(log.idle_s, 1), "epoch": log.epoch, "iteration": log.iteration
            }
            for name, log in self.logs.items()
        }  # fmt: skip

    def silent(self) -> list[str]:
        """Return logs that indicate a hang, the most informative first; empty without a hang or if not
        requested.

        If all logs are silent, all are returned. A single silent log counts only if it has shown iterations,
        because many ranks never print.
        """
        if not self.limit_s:
            return []
        quiet = [name for name, log in self.logs.items() if log.idle_s >= self.limit_s]
        if len(quiet) < len(self.logs):
            quiet = [name for name in quiet if self.logs[name].moves >= 2]
        if not self.counts() and time.monotonic() < self.cleared + self.quiet_s:
            return []
        return sorted(quiet, key=self.order)

    def counts(self) -> bool:
        """Return whether a log of this node has counted iterations, so that its silence means something."""
        return any(log.moves >= 2 for log in self.logs.values())

    def clear(self) -> None:
        """Other nodes make progress: accept the silence of this one, each time for twice as long."""
        if self.cleared:
            self.quiet_s = max(self.limit_s, min(LONGEST_S, 2 * self.quiet_s))
        self.cleared = time.monotonic()

    def order(self, name: str) -> tuple[bool, int, bool, float]:
        """Sort key: logs with iterations first, of these the log that is behind; then ranks' own logs, then the
        longest silence."""
        log = self.logs[name]
        return log.iteration is None, log.iteration or 0, name == self.own, -log.idle_s
