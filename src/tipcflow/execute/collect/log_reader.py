"""Read one log in chunks into series and other facts; `tipcflow parse` uses the same parser."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tipcflow.domain import InfraError, LogLines, RankReport, Series
from tipcflow.domain.numbers.units import limit
from tipcflow.execute.collect.deduplicate import own_start, recorded_start
from tipcflow.parse.text import last_state

if TYPE_CHECKING:
    from tipcflow.execute.collect.spool import Logged
    from tipcflow.parse.bulk.batch import Batch
    from tipcflow.parse.rules.line_format import LineFormat

# Best chunk size of the parser (parse.chunk.CHUNK).
PIECE = 1 << 21
# Parsing runs at more than 50 MB/s; a log that takes longer has lines crafted to be slow.
READ_S = 600.0


@dataclass(frozen=True)
class Origin:
    """The owner of a log: the parts of its series' keys other than metric, phase and rank."""

    run: str
    step: str
    attempt: int
    node: str
    source: str = ""

    def series(self, logged: "Logged") -> Series:
        """Return the log's samples with their full key."""
        return Series(
            run=self.run, step=self.step, attempt=self.attempt, node=self.node, source=self.source,
            metric=logged.metric, phase=logged.phase, rank=logged.rank, values=logged.values, epoch=logged.epoch,
            iteration=logged.iteration, offset=logged.offset, unit=logged.units[0][1], units=logged.units[1:],
        )  # fmt: skip


class LogRead(NamedTuple):
    """The content of a log other than metrics.

    Attributes:
        ranks: reports of the processes, in log order.
        lines: number of recognized lines of the attempt.
    """

    ranks: tuple[RankReport, ...]
    lines: LogLines


class Deadline:
    """A time limit for parsing.

    Args:
        seconds: limit, counted from construction.
        clock: monotonic clock, seconds.
    """

    def __init__(self, seconds: float = READ_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._until = clock() + seconds

    def pieces(self, path: Path, start: int = 0) -> Iterator[bytes]:
        """Yield a file in chunks from a byte offset.

        Raises:
            InfraError: the time limit is exceeded.
        """
        size = path.stat().st_size
        done = start
        with path.open("rb") as file:
            file.seek(start)
            while piece := file.read(PIECE):
                if self._clock() > self._until:
                    raise InfraError(f"{path.name}: read {done} of {size} bytes within {limit(self._seconds)}")
                yield piece
                done += len(piece)


def read_numbers(
    path: Path, folder: Path, origin: Origin, log_format: str, *, rank: int, deadline: Deadline,
    keep: Callable[[Iterator[Series]], object], guess: bool = True,
) -> LogRead:  # fmt: skip
    """Parse a training or evaluation log and pass its series on one by one.

    Lines that earlier attempts wrote are skipped.

    Args:
        folder: folder of the step and node; it contains the log.
        rank: rank of lines that name none.
        keep: receives the series.
        guess: if the runner's record lacks the start of the attempt's lines, decide by the iteration numbers.

    Raises:
        ConfigError: unknown log format.
        InfraError: parsing took too long.
    """
    from tipcflow.execute.collect.spool import Spool
    from tipcflow.parse.bulk.columns import Columns, batches
    from tipcflow.parse.training.formats import line_formats
    from tipcflow.parse.training.side import AuxiliaryLine

    formats, offset = line_formats(log_format), recorded_start(path, folder)
    known, start = offset is not None or not guess, offset or 0

    def parsed(side: AuxiliaryLine, start: int) -> "Iterator[Batch]":
        return batches(deadline.pieces(path, start), Columns(formats, side), start=start)

    side, lines = AuxiliaryLine(("rank",)), LogLines()
    with Spool(folder, rank=rank) as spool:
        for batch in parsed(side, start):
            spool.add(batch)
            lines += _counted(batch, formats)
        if not known:
            start = own_start(spool.series, path, folder)
        keep(map(origin.series, filter(_has_values, (logged.since(start) for logged in spool.series()))))
    if start and not known:
        side = AuxiliaryLine(("rank",))
        lines = sum((_counted(batch, formats) for batch in parsed(side, start)), LogLines())
    ranks = tuple(report.model_copy(update={"node": origin.node}) for report in side.ranks)
    return LogRead(ranks, lines)


def _has_values(logged: "Logged") -> bool:
    return len(logged.values) > 0


def _counted(batch: "Batch", formats: tuple["LineFormat", ...]) -> LogLines:
    recognised = sum(batch.kinds[form.name] for form in formats)
    return LogLines(recognised=recognised, unknown=batch.lines - batch.blank - batch.kinds.total())


def own_lines(path: Path, folder: Path, deadline: Deadline) -> Iterator[tuple[int, str]]:
    """Yield (byte offset, line) of a log like `tipcflow.parse.lines_of`; lines over 1 MiB are truncated.

    Lines that an earlier attempt wrote are skipped as far as the runner's record shows.

    Args:
        folder: folder of the step and node; it contains the log.
    """
    from tipcflow.parse.training.stream import numbered_lines

    start = recorded_start(path, folder) or 0
    for offset, line in numbered_lines(deadline.pieces(path, start)):
        yield start + offset, last_state(line).decode("utf-8", "replace")


def with_attempt(origin: Origin, attempt: int) -> Origin:
    """Return the origin of the same log for another attempt."""
    return replace(origin, attempt=attempt)
