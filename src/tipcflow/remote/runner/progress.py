"""Progress of a command in its logs: size, silence, and last iteration."""

from __future__ import annotations

import glob
import os
import re
import time
from typing import Iterable

from .files import Json, open_regular
from .outputs import is_secret

LOOK_S = 1.0
TRUST_S = 5.0  # a longer gap between two checks does not count as silence: the runner itself was stopped
TAIL = 8192  # bytes of a log in which its last iteration is looked for
MOST = 64  # logs of one command
LINE = 300  # characters of a last line
# `Iter: 10/20`, `global_step: 10`, `step 10`, `batch 3`, and `[ 10/5005]` of those who print no word.
ITERATION = re.compile(
    rb"\b(?:iters?|iterations?|global[_ ]?steps?|steps?|batch|batch[_ ]?id|mini-?batch)\b\W{0,3}(\d{1,12})\b"
    rb"|\[\s*(\d{1,12})/\d+\]",
    re.I,
)


def iteration_of(data: bytes) -> int | None:
    """The last iteration that a piece of log names, None when it names none."""
    found = [int(word or count) for word, count in ITERATION.findall(data)]
    return found[-1] if found else None


def end_of(path: str, size: int = TAIL) -> bytes:
    """The last bytes of a file, none when it cannot be read."""
    try:
        with open_regular(path) as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - size))
            return handle.read(size)
    except OSError:
        return b""


def last_line(path: str) -> str:
    """The last line that is not empty, its beginning."""
    lines = [line for line in re.split(rb"[\r\n]+", end_of(path)) if line.strip()]
    return lines[-1].decode("utf-8", "replace").strip()[:LINE] if lines else ""


class Log:
    """One log.

    Attributes:
        idle_s: how long nothing was added, in seconds.
        iteration: the last that it names; `moves` counts how often it was seen to change.
        key: device and inode.
    """

    def __init__(self, path: str, stat: os.stat_result) -> None:
        self.path, self.key = path, (stat.st_dev, stat.st_ino)
        self.size, self.idle_s, self.moves = stat.st_size, 0.0, 0
        self.iteration = iteration_of(end_of(path)) if stat.st_size else None

    def look(self, passed: float) -> None:
        """Update after `passed` seconds: growth, or a restart of the log."""
        try:
            stat = os.stat(self.path)
        except OSError:
            stat = None
        if stat is None or stat.st_size == self.size:
            self.idle_s += min(passed, TRUST_S)
            return
        self.size, self.key, self.idle_s = stat.st_size, (stat.st_dev, stat.st_ino), 0.0
        iteration = iteration_of(end_of(self.path))
        if iteration is not None and iteration != self.iteration:
            self.iteration, self.moves = iteration, self.moves + 1


class Progress:
    """The logs of the current command.

    Attributes:
        logs: name (relative to the suite's root, or to the job folder) -> log; the command's own comes first.
    """

    def __init__(self, folder: str, spec: Json) -> None:
        self.folder, self.root, self.patterns = folder, spec["root"], spec.get("progress") or []
        self.limit_s = float(spec.get("hang_s") or 0)
        self.logs: dict[str, Log] = {}
        self.old: dict[str, int] = {}  # path -> size of what an earlier attempt left
        self.own, self.since_ns, self.looked = "", 0, time.monotonic()

    def begin(self, own: str, since_ns: int) -> None:
        """A command begins.

        Args:
            own: its log, relative to the job folder.
            since_ns: logs that were last written before are an earlier attempt's.
        """
        self.own, self.since_ns, self.looked = own, since_ns, time.monotonic()
        self.logs, self.old = {}, {}
        self.find()

    def candidates(self) -> Iterable[tuple[str, str]]:
        """Name and path of every file that may be a log."""
        yield self.own, os.path.join(self.folder, self.own)
        for pattern in self.patterns:
            for base in (self.root, self.folder):
                for path in sorted(glob.glob(os.path.join(glob.escape(base), pattern), recursive=True)):
                    yield os.path.relpath(path, base), path

    def find(self) -> None:
        """Logs that are there by now."""
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
                    continue  # clocks jump: what is written to is no old one
            # A log may have two names.
            if os.path.isfile(path) and (stat.st_dev, stat.st_ino) not in known:
                self.logs[name] = Log(path, stat)
                known.add(self.logs[name].key)

    def look(self) -> None:
        """Look at all logs, once a second."""
        passed = time.monotonic() - self.looked
        if self.own and passed >= LOOK_S:
            self.looked = time.monotonic()
            for log in self.logs.values():
                log.look(passed)
            self.find()

    def told(self) -> Json:
        """name -> size in bytes, seconds of silence, last iteration."""
        return {
            name: {"size": log.size, "idle_s": round(log.idle_s, 1), "iteration": log.iteration}
            for name, log in self.logs.items()
        }

    def silent(self) -> list[str]:
        """Return logs that indicate a hang, the most informative first; empty without a hang or if not requested.

        If all logs are silent, all are returned. A single silent log counts only if it has shown iterations,
        because many ranks never print.
        """
        if not self.limit_s:
            return []
        quiet = [name for name, log in self.logs.items() if log.idle_s >= self.limit_s]
        if len(quiet) < len(self.logs):
            quiet = [name for name in quiet if self.logs[name].moves >= 2]
        return sorted(quiet, key=self.order)

    def order(self, name: str) -> tuple[bool, int, bool, float]:
        """Those with iterations first, of them who is behind; ranks' own logs, then the longest silence."""
        log = self.logs[name]
        return log.iteration is None, log.iteration or 0, name == self.own, -log.idle_s
