"""One log -> its series and what else is read of it, by chunks: the reader of `tipcflow parse`."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tipcflow.domain import InfraError, LogLines, RankReport, Series
from tipcflow.execute.collect.deduplicate import own_start
from tipcflow.parse.text import last_state

if TYPE_CHECKING:
    from tipcflow.execute.collect.spool import Logged
    from tipcflow.parse.bulk.batch import Batch
    from tipcflow.parse.rules.line_format import LineFormat

# Pieces of a log are best of this size (parse.chunk.CHUNK).
PIECE = 1 << 21
# A log is read with more than 50 MB per second; one that takes longer holds lines that were made to be slow.
READ_S = 600.0


@dataclass(frozen=True)
class Origin:
    """Whose log it is: what its series' keys have besides metric, phase and rank."""

    run: str
    step: str
    attempt: int
    node: str
    source: str = ""

    def series(self, one: "Logged") -> Series:
        """Samples of the log with their whole key."""
        return Series(
            run=self.run, step=self.step, attempt=self.attempt, node=self.node, source=self.source,
            metric=one.metric, phase=one.phase, rank=one.rank, values=one.values, epoch=one.epoch,
            iteration=one.iteration, offset=one.offset, unit=one.units[0][1], units=one.units[1:],
        )  # fmt: skip


class LogRead(NamedTuple):
    """What a log holds beside numbers.

    Attributes:
        ranks: what the processes said of themselves, in the order of the log.
        lines: how many lines of the attempt were recognised.
    """

    ranks: tuple[RankReport, ...]
    lines: LogLines


class Deadline:
    """Reading must end by then.

    Args:
        seconds: from now on.
        clock: seconds, ascending.
    """

    def __init__(self, seconds: float = READ_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._until = clock() + seconds

    def pieces(self, path: Path, start: int = 0) -> Iterator[bytes]:
        """A file in pieces, from a byte on.

        Raises:
            InfraError: the time is over.
        """
        size = path.stat().st_size
        done = start
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(PIECE):
                if self._clock() > self._until:
                    raise InfraError(
                        f"reading {path.name} took more than {self._seconds:g} s: "
                        f"{done} of {size} bytes were read, what follows is not known"
                    )
                yield piece
                done += len(piece)


def read_numbers(
    path: Path, folder: Path, origin: Origin, log_format: str, *, rank: int, deadline: Deadline,
    keep: Callable[[Iterator[Series]], object], once: bool = True,
) -> LogRead:  # fmt: skip
    """Read a training or evaluation log, and hand its series on one by one.

    Args:
        folder: of the step and node; the log is below it.
        rank: of lines that name none.
        keep: takes the series.
        once: leave out what earlier attempts logged into the same file.

    Raises:
        ConfigError: there is no such format.
        InfraError: reading took too long.
    """
    from tipcflow.execute.collect.spool import Spool
    from tipcflow.parse.bulk.columns import Columns, batches
    from tipcflow.parse.training.formats import line_formats
    from tipcflow.parse.training.side import Side

    side, formats = Side(("rank",)), line_formats(log_format)
    lines = LogLines()
    with Spool(folder, rank=rank) as spool:
        for batch in batches(deadline.pieces(path), Columns(formats, side)):
            spool.add(batch)
            lines += _counted(batch, formats)
        start = own_start(spool.series, path, folder) if once else 0
        keep(origin.series(cut) for one in spool.series() if len((cut := one.since(start)).values))
    if start:
        own = batches(deadline.pieces(path, start), Columns(formats, Side(("rank",))))
        lines = sum((_counted(batch, formats) for batch in own), LogLines())
    ranks = tuple(report.model_copy(update={"node": origin.node}) for report in side.ranks)
    return LogRead(ranks, lines)


def _counted(batch: "Batch", formats: tuple["LineFormat", ...]) -> LogLines:
    recognised = sum(batch.kinds[form.name] for form in formats)
    return LogLines(recognised=recognised, unknown=batch.lines - batch.blank - batch.kinds.total())


def lines_of_file(path: Path, deadline: Deadline) -> Iterator[tuple[int, str]]:
    """(byte offset, line) of a log as `tipcflow.parse.lines_of` gives them; a line of more than 1 MiB is cut."""
    from tipcflow.parse.training.stream import numbered_lines

    for offset, line in numbered_lines(deadline.pieces(path)):
        yield offset, last_state(line).decode("utf-8", "replace")


def with_attempt(origin: Origin, attempt: int) -> Origin:
    """The same log, of another attempt."""
    return replace(origin, attempt=attempt)
