"""Line-by-line scan of a log: which lines count, their rank, and their values."""

from collections.abc import Iterator
from dataclasses import dataclass

from tipcflow.parse.failures.launch import REPEATS_END, REPEATS_FROM
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.prefix import rank_prefix, rank_title
from tipcflow.parse.rules.reading import Reading, samples_of
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import strip_ansi

# Longer lines are binary data or dumps; they are skipped before any pattern is applied.
MAX_LINE = 20_000


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """The values of a line and their format."""

    form: str
    readings: tuple[Reading, ...]


def match_line(line: str, formats: tuple[LineFormat, ...], *, muted: bool = False) -> MatchedLine | None:
    """Parse a line with the first format that matches; None if none matches.

    Args:
        line: without colors; a rank prefix is removed.
        muted: the line is in a list that is ignored.
    """
    rank, start = rank_prefix(line)
    body = line[start:] if start else line
    for form in formats:
        readings = form.read(body, muted=muted)
        if readings:
            if start:
                readings = [reading.moved(start, rank) for reading in readings]
            return MatchedLine(form.name, tuple(readings))
    return None


class Scan:
    """The state on which the meaning of a line depends.

    Attributes:
        rank: of lines that name none; -1 until a rank is known.
        repeats: the line is in the launcher's second copy of a worker's log, which is ignored.
        muted: the line is in a list that is ignored.
    """

    def __init__(self, formats: tuple[LineFormat, ...]) -> None:
        self.formats = formats
        self.rank = -1
        self.repeats = False
        self.muted = False
        self._mutes = tuple(form.mutes for form in formats if form.mutes)

    @property
    def steady(self) -> bool:
        """Return whether the meaning of the next line depends on that line alone (`steering` lists texts of lines
        that may change that)."""
        return self.rank < 0 and not self.repeats and not self.muted

    @property
    def steering(self) -> tuple[str, ...]:
        """Return the texts of which every line that affects later lines contains at least one."""
        return (REPEATS_FROM, "==> ", *(mutes.begin for mutes in self._mutes))

    def line(self, raw: str) -> tuple[str, MatchedLine | None]:
        """Return the next line of the log without colors, and its values that count."""
        if len(raw) > MAX_LINE:
            return "", None
        line = strip_ansi(raw)
        if self._steered(line):
            return line, None
        return line, match_line(line, self.formats, muted=self.muted)

    def samples(self, offset: int, raw: str) -> Iterator[Sample]:
        """Yield the samples of the next line."""
        line, spotted = self.line(raw)
        if spotted:
            yield from self.samples_in(line, spotted, offset=offset)

    def samples_in(self, line: str, spotted: MatchedLine, *, offset: int) -> Iterator[Sample]:
        """Yield the samples of a parsed line."""
        for reading in spotted.readings:
            yield from samples_of(reading, line, offset=offset, rank=self.rank)

    def _steered(self, line: str) -> bool:
        """Return whether the line is ignored, or marks other lines as ignored."""
        if self.repeats:
            self.repeats = REPEATS_END not in line
            return True
        if REPEATS_FROM in line:
            self.repeats = True
            return True
        rank = rank_title(line)
        if rank is not None:
            self.rank = rank
            return True
        for mutes in self._mutes:
            if mutes.begin in line or mutes.end in line:
                self.muted = mutes.begin in line
                return True
        return False
