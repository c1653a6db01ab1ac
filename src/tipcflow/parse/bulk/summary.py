"""Summary of one whole log in bounded memory: recognized lines, statistics of every metric, and other reports."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tipcflow.domain import RankReport
from tipcflow.parse.bulk.batch import Batch
from tipcflow.parse.bulk.columns import Columns, batches
from tipcflow.parse.bulk.series import SeriesKey, SeriesSummary
from tipcflow.parse.failures.launch import LaunchFailure
from tipcflow.parse.reports.autolog import AutologBlock
from tipcflow.parse.reports.results import ResultLine
from tipcflow.parse.training.formats import AUTO
from tipcflow.parse.training.kinds import readers_of
from tipcflow.parse.training.side import AUXILIARY_KINDS, AuxiliaryLine


@dataclass
class LogSummary:
    """The summary of a log.

    Attributes:
        lines: number of lines, of which `blank` are empty.
        kinds: format, or other kind of line (`SIDES`) -> number of lines. Each line counts once.
        series: in the order of their first line.
        launch: the worker that the launcher reports as failed, None if no launcher failed.
        engine: the engine settings that an inference process reports.
    """

    bytes: int = 0
    lines: int = 0
    blank: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    series: dict[SeriesKey, SeriesSummary] = field(default_factory=dict)
    autolog: tuple[AutologBlock, ...] = ()
    results: tuple[ResultLine, ...] = ()
    ranks: tuple[RankReport, ...] = ()
    launch: LaunchFailure | None = None
    engine: dict[str, str] = field(default_factory=dict)

    @property
    def unrecognised(self) -> int:
        """Return the number of lines that are neither empty nor of any kind."""
        return self.lines - self.blank - self.kinds.total()

    @property
    def format(self) -> str:
        """Return the line format of most lines, otherwise the most frequent other kind; '' if no line was
        recognized."""
        kinds = [kind for kind, _ in self.kinds.most_common()]
        return next((kind for kind in kinds if kind not in AUXILIARY_KINDS), kinds[0] if kinds else "")


def summarize_log(pieces: Iterable[bytes], log_format: str = AUTO, *, rank: int = -1) -> LogSummary:
    """Summarize a log that arrives in pieces of any size.

    Args:
        log_format: a line format, `auto`, or one of `SIDES`.
        rank: of lines that name none.

    Raises:
        ConfigError: the format does not exist.
    """
    formats, sides = readers_of(log_format)
    side = AuxiliaryLine(sides)
    account = LogSummary()
    for batch in batches(_counted(pieces, account), Columns(formats, side)):
        _add(account, batch, rank)
    for sample in (*(block_sample for block in side.autolog for block_sample in block.samples), *side.benchmark):
        key = SeriesKey(sample.metric, sample.phase, rank, sample.unit)
        account.series.setdefault(key, SeriesSummary()).add(np.array([sample.value]))
    if side.benchmark:
        account.kinds["benchmark"] += side.benchmark_lines
    account.autolog, account.results, account.ranks = side.autolog, tuple(side.results), side.ranks
    account.launch, account.engine = side.launch, side.engine
    return account


def _counted(pieces: Iterable[bytes], account: LogSummary) -> Iterable[bytes]:
    for piece in pieces:
        account.bytes += len(piece)
        yield piece


def _add(account: LogSummary, batch: Batch, rank: int) -> None:
    account.lines += batch.lines
    account.blank += batch.blank
    account.kinds.update(batch.kinds)
    # Metrics of the same lines share one array of ranks.
    ranks: dict[int, list[int]] = {}
    for (metric, phase, unit), column in batch.columns.items():
        column_ranks = ranks.get(id(column.rank))
        if column_ranks is None:
            first = int(column.rank[0])
            column_ranks = [first] if (column.rank == first).all() else np.unique(column.rank).tolist()
            ranks[id(column.rank)] = column_ranks
        for rank_value in column_ranks:
            values = column.values if len(column_ranks) == 1 else column.values[column.rank == rank_value]
            key = SeriesKey(metric, phase, rank if rank_value < 0 else rank_value, unit)
            account.series.setdefault(key, SeriesSummary()).add(values)
