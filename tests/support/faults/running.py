"""A `tipcflow run` while it is running: its output, with times."""

import subprocess
import threading
import time
from dataclasses import dataclass

from tests.support.certify import DEADLINE_S, Site, wait_for


@dataclass(frozen=True)
class Line:
    """One line of the progress, with when it was read (seconds since the epoch)."""

    at: float
    text: str


class Running:
    """The process of one run. End it with `end` or `kill`."""

    def __init__(self, site: Site, *extra: str, **options: str) -> None:
        self.lines: list[Line] = []
        self.code: int | None = None
        self.process = subprocess.Popen(
            site.command(*extra, **options),
            env=site.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(Line(time.time(), line.rstrip()))

    @property
    def output(self) -> str:
        """All that was printed."""
        return "\n".join(line.text for line in self.lines)

    @property
    def id(self) -> str:
        """The run's id, which is on the first line of output."""
        wait_for(lambda: bool(self._ids()), what=f"the run's id: {self.output}")
        return self._ids()[0]

    @property
    def id_or_none(self) -> str:
        """The run's id; '' when none was printed."""
        return next(iter(self._ids()), "")

    def _ids(self) -> list[str]:
        words = (line.text.partition("  run ") for line in self.lines)
        return [run for _, found, run in words if found]

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def time_of(self, words: str) -> float | None:
        """When a line with these words was read, None when there was none."""
        return next((line.at for line in self.lines if words in line.text), None)

    def wait_said(self, words: str, *, seconds: float = 60) -> float:
        """Wait for a line with these words; when it was read."""
        wait_for(lambda: self.time_of(words) is not None, what=f"{words!r}: {self.output}", seconds=seconds)
        at = self.time_of(words)
        assert at is not None
        return at

    def end(self, seconds: float = DEADLINE_S) -> int:
        """Wait for its end; the exit code."""
        try:
            self.code = self.process.wait(seconds)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(10)
        return self.code

    def kill(self) -> None:
        """SIGKILL, as a machine that crashes does."""
        self.process.kill()
        self.process.wait()
        self._reader.join(10)
