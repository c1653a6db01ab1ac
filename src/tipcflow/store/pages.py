"""What pages ask of the database: lists with their filters, and one run without its raw samples."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, or_, select

from tipcflow.domain import Run, Status
from tipcflow.store.base import StoreBase
from tipcflow.store.packing import packed_of, value_of
from tipcflow.store.schema import runs, series
from tipcflow.store.summaries import last_attempts

# Signs of a reason that a list shows; the run's own page has all of it.
REASON = 400
_SEARCHED = ("chain", "id", "reason", "suite_commit", "framework", "cluster", "mode", "trigger")


@dataclass(frozen=True)
class Wanted:
    """Which runs a list shows; '' is any. `status` is a status word, or `running` for those without one yet."""

    suite: str = ""
    status: str = ""
    text: str = ""
    chain: str = ""


@dataclass(frozen=True)
class Past:
    """One earlier run of a chain, as its history strip shows it."""

    id: str
    status: Status | None
    created_at: float


@dataclass(frozen=True)
class ChainRow:
    """A chain: its newest run, and its newest runs oldest first."""

    chain: str
    latest: Run
    history: tuple[Past, ...]


@dataclass(frozen=True)
class Listed:
    """One page of a list. `total` counts all rows that match; `counts` the status words before that filter."""

    rows: tuple[Any, ...]
    total: int
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LossPoint:
    """One logged training loss of the last attempt; nan and inf are values."""

    step: str
    node: str
    rank: int
    ordinal: int
    value: float
    epoch: int
    iteration: int


class PagesMixin(StoreBase):
    """Reads only; nothing here loads the raw samples of a run but `losses`."""

    def chains_page(self, wanted: Wanted, *, limit: int, offset: int = 0, history: int = 20) -> Listed:
        """Chains by their newest run, newest first: rows are `ChainRow`, counts are of newest runs."""
        latest = _latest(wanted)
        with self._read() as connection:
            once: dict[str, tuple[str, str, str | None]] = {}
            for row in connection.execute(latest):
                once.setdefault(row.chain, (row.id, row.chain, row.status))
            found = list(once.values())
            matching = [row for row in found if not wanted.status or _word(row[2]) == wanted.status]
            page = matching[offset : offset + limit]
            newest = {row["id"]: row for row in connection.execute(_shown([one[0] for one in page])).mappings()}
            strips: dict[str, list[Past]] = {}
            for row in connection.execute(_strips([one[1] for one in page], history)):
                past = Past(row.id, Status(row.status) if row.status else None, row.created_at)
                strips.setdefault(row.chain, []).append(past)
        rows = tuple(
            ChainRow(chain, _run(newest[run_id]), tuple(reversed(strips[chain]))) for run_id, chain, _ in page
        )
        return Listed(rows, len(matching), _counts(found))

    def runs_page(self, wanted: Wanted, *, limit: int, offset: int = 0) -> Listed:
        """Runs, newest first: rows are `Run` with the beginning of their reason."""
        match = _match(wanted)
        said = select(runs.c.status, func.count()).where(*match).group_by(runs.c.status)
        query = select(*_COLUMNS).where(*match, *_of_status(wanted.status)).order_by(*_NEWEST)
        with self._read() as connection:
            counts = {_word(status): number for status, number in connection.execute(said)}
            rows = tuple(_run(row) for row in connection.execute(query.limit(limit).offset(offset)).mappings())
        total = counts.get(wanted.status, 0) if wanted.status else sum(counts.values())
        return Listed(rows, total, counts)

    def suites(self) -> list[str]:
        """The names of all suites that were ever run."""
        with self._read() as connection:
            return sorted(connection.execute(select(runs.c.suite).distinct()).scalars())

    def run_or_none(self, run_id: str) -> Run | None:
        """The run of exactly that id, None when there is none."""
        with self._read() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
        return None if row is None else _run(row)

    def losses(self, run_id: str) -> list[LossPoint]:
        """Training losses of each step's last attempt, by step, node, rank and in the order they were logged.

        None of a series that was rolled up.
        """
        columns = [series.c[name] for name in ("step", "node", "rank", "samples")]
        query = last_attempts(select(*columns), run_id).where(
            series.c.leg == "",
            series.c.metric == "loss",
            series.c.phase == "train",
            series.c.samples.is_not(None),
        )
        with self._read() as connection:
            return [
                LossPoint(step, node, rank, ordinal, value_of(told), epoch, iteration)
                for step, node, rank, samples in connection.execute(query.order_by(*columns[:3]))
                for ordinal, told, epoch, iteration, *_ in packed_of(samples)
            ]


_COLUMNS = [
    func.substr(column, 1, REASON).label("reason") if column.name == "reason" else column for column in runs.c
]
_NEWEST = (runs.c.created_at.desc(), runs.c.id.desc())


def _match(wanted: Wanted) -> list[ColumnElement[bool]]:
    """Every filter but that of the status."""
    found: list[ColumnElement[bool]] = []
    if wanted.suite:
        found.append(runs.c.suite == wanted.suite)
    if wanted.chain:
        found.append(runs.c.chain == wanted.chain)
    for word in wanted.text.split():
        found.append(or_(*(runs.c[name].icontains(word, autoescape=True) for name in _SEARCHED)))
    return found


def _of_status(status: str) -> list[ColumnElement[bool]]:
    if not status:
        return []
    return [runs.c.status.is_(None) if status == "running" else runs.c.status == status]


def _latest(wanted: Wanted) -> Select[Any]:
    """The newest run of each chain, if it matches; the text is looked for in newest runs only.

    An index gives the newest time of each chain; numbering all runs would cost six times as much. Runs of a chain
    that began in the same instant all come: the caller takes the first.
    """
    newest = select(runs.c.chain, func.max(runs.c.created_at).label("at")).group_by(runs.c.chain).subquery()
    query = select(runs.c.id, runs.c.chain, runs.c.status)
    query = query.join(newest, and_(runs.c.chain == newest.c.chain, runs.c.created_at == newest.c.at))
    return query.where(*_match(wanted)).order_by(*_NEWEST)


def _shown(ids: list[str]) -> Select[Any]:
    return select(*_COLUMNS).where(runs.c.id.in_(ids))


def _strips(chains: list[str], history: int) -> Select[Any]:
    place = func.row_number().over(partition_by=runs.c.chain, order_by=_NEWEST).label("place")
    numbered = select(runs.c.id, runs.c.chain, runs.c.status, runs.c.created_at, place)
    own = numbered.where(runs.c.chain.in_(chains)).subquery()
    return select(own).where(own.c.place <= history).order_by(own.c.chain, own.c.place)


def _word(status: str | None) -> str:
    return status or "running"


def _counts(found: list[tuple[str, str, str | None]]) -> dict[str, int]:
    return dict(Counter(_word(status) for _, _, status in found))


def _run(row: RowMapping) -> Run:
    return Run.model_validate(dict(row))
