"""A log line by line: which lines count, which rank they are of, and what they say."""

from collections.abc import Iterator
from dataclasses import dataclass

from tipcflow.parse.failures.launch import REPEATS_END, REPEATS_FROM
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.prefix import rank_prefix, rank_title
from tipcflow.parse.rules.reading import Reading, samples_of
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import strip_ansi

# Longer lines are binary rubbish or dumps: they are skipped before any pattern looks at them.
MAX_LINE = 20_000


@dataclass(frozen=True, slots=True)
class Spotted:
    """What a line says, and in which format."""

    form: str
    readings: tuple[Reading, ...]


def spot(line: str, formats: tuple[LineFormat, ...], *, muted: bool = False) -> Spotted | None:
    """What a line says in the first format that fits; None when none does.

    Args:
        line: without colours; a rank in front is taken off.
        muted: it stands in a list that does not count.
    """
    rank, start = rank_prefix(line)
    body = line[start:] if start else line
    for form in formats:
        readings = form.read(body, muted=muted)
        if readings:
            if start:
                readings = [reading.moved(start, rank) for reading in readings]
            return Spotted(form.name, tuple(readings))
    return None


class Scan:
    """The few things that a line's meaning depends on besides itself.

    Attributes:
        rank: of the lines that name none, -1 while none was told.
        repeats: in the launcher's second copy of a worker's log, which does not count.
        muted: in a list that does not count.
    """

    def __init__(self, formats: tuple[LineFormat, ...]) -> None:
        self.formats = formats
        self.rank = -1
        self.repeats = False
        self.muted = False
        self._mutes = tuple(form.mutes for form in formats if form.mutes)

    @property
    def steady(self) -> bool:
        """Whether the next line means what it says by itself (`steers` tells which lines may change that)."""
        return self.rank < 0 and not self.repeats and not self.muted

    @property
    def steering(self) -> tuple[str, ...]:
        """Texts without which no line changes the meaning of later ones."""
        return (REPEATS_FROM, "==> ", *(mutes.begin for mutes in self._mutes))

    def line(self, raw: str) -> tuple[str, Spotted | None]:
        """The next line of the log, without colours, and what it says that counts."""
        if len(raw) > MAX_LINE:
            return "", None
        line = strip_ansi(raw)
        if self._steered(line):
            return line, None
        return line, spot(line, self.formats, muted=self.muted)

    def samples(self, offset: int, raw: str) -> Iterator[Sample]:
        """The samples of the next line."""
        line, spotted = self.line(raw)
        if spotted:
            yield from self.samples_in(line, spotted, offset=offset)

    def samples_in(self, line: str, spotted: Spotted, *, offset: int) -> Iterator[Sample]:
        """The samples of what was spotted in a line."""
        for reading in spotted.readings:
            yield from samples_of(reading, line, offset=offset, rank=self.rank)

    def _steered(self, line: str) -> bool:
        """Whether the line does not count, or says which others do not."""
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
