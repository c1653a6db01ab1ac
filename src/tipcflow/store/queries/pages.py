"""Queries of the web pages: lists with filters, and one run without its raw samples."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    collate,
    func,
    literal_column,
    or_,
    select,
    type_coerce,
)

from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.metrics import is_loss, objective
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import Part
from tipcflow.store.schema import runs, series
from tipcflow.store.series.packing import packed_of, value_of, values_of
from tipcflow.store.series.summaries import last_attempts
from tipcflow.store.types import dumps

# Characters of a reason in a list; the run's own page shows the whole reason.
REASON = 400
# Matching runs whose ids are read at once.
_FEW = 2_000
# Runs in which the values of filters are searched.
_CHOICES = 2_000
ChainOrder = Literal["worst", "newest", "chain", "longest"]
SEARCHED = ("chain", "id", "reason", "suite_commit", "framework", "cluster", "mode", "trigger")
# As the index has it, without parameters.
_SEARCHED_TEXT = literal_column("(" + " || ' ' || ".join(f"runs.{name}" for name in SEARCHED) + ")", Text)


@dataclass(frozen=True)
class RunFilter:
    """Filter of a list of runs; '' matches any.

    Attributes:
        status: a status word, or `running` for runs without a status.
        build: framework with its version.
        since, until: times between which a run was created.
    """

    suite: str = ""
    status: str = ""
    text: str = ""
    chain: str = ""
    mode: str = ""
    cluster: str = ""
    environment: str = ""
    build: str = ""
    node: str = ""
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True)
class EarlierRun:
    """One earlier run of a chain, as shown in its history strip."""

    id: str
    status: Status | None
    created_at: float


@dataclass(frozen=True)
class ChainRow:
    """A chain: its newest run, and its newest runs, oldest first."""

    chain: str
    latest: Run
    history: tuple[EarlierRun, ...]


@dataclass(frozen=True)
class Listed:
    """One page of a list. `total` counts all matching rows; `counts` the status words before the status filter."""

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


class Pages(Part):
    """Read-only queries; only `losses` loads raw samples of a run."""

    def chains(
        self, wanted: RunFilter, *, limit: int, offset: int = 0, history: int = 20, order: ChainOrder = "newest"
    ) -> Listed:
        """Return chains by their newest run: rows are `ChainRow`, counts are of newest runs.

        Confirm runs and runs of bisections are not the state of a chain; the list of runs shows them.

        Args:
            order: of chains; equal ones, and all in `newest`, by the time of the newest run. In `worst`,
                runs without a status come before green ones; in `longest`, runs that have not ended are last.
        """
        with self._read() as connection:
            latest = connection.execute(_latest(wanted, self._database.engine.dialect.name)).all()
            matching = [row for row in latest if not wanted.status or _word(row[2]) == wanted.status]
            if order in _ORDERS:
                matching.sort(key=_ORDERS[order])
            page = matching[offset : offset + limit]
            ids = [row[0] for row in page]
            newest = {row["id"]: row for row in connection.execute(_shown(ids)).mappings()}
            strips: dict[str, list[EarlierRun]] = {}
            for run_id, chain, status, at in connection.execute(_strips(history), {"ids": ids}).all():
                strip = strips.setdefault(chain, [])
                if len(strip) < history:
                    strip.append(EarlierRun(run_id, _STATUS[status], at))
        rows = tuple(ChainRow(row.chain, _run(newest[row.id]), tuple(reversed(strips[row.chain]))) for row in page)
        return Listed(rows, len(matching), _counts(latest))

    def runs(self, wanted: RunFilter, *, limit: int, offset: int = 0) -> Listed:
        """Return runs, newest first: rows are `Run` with the start of their reason."""
        match = _match(wanted, self._database.engine.dialect.name)
        count_query = select(runs.c.status, func.count()).where(*match).group_by(runs.c.status)
        query = select(*_COLUMNS).where(*match, *_of_status(wanted.status)).order_by(*_NEWEST)
        with self._read() as connection:
            known = self._few(connection, match) if wanted.text else None
            if known is not None:
                counts = _counts([(run_id, "", status) for run_id, status in known])
                page = [run_id for run_id, status in known if not wanted.status or _word(status) == wanted.status]
                query = _shown(page[offset : offset + limit]).order_by(*_NEWEST)
            else:
                counts = {_word(status): number for status, number in connection.execute(count_query)}
                query = query.limit(limit).offset(offset)
            rows = tuple(_run(row) for row in connection.execute(query).mappings())
        total = counts.get(wanted.status, 0) if wanted.status else sum(counts.values())
        return Listed(rows, total, counts)

    def choices(self) -> dict[str, list[str]]:
        """Return the modes, clusters, environment classes and framework builds of the newest runs, by name."""
        columns = {"mode": "mode", "cluster": "cluster", "environment": "environment", "build": "framework"}
        newest = select(*(runs.c[name].label(key) for key, name in columns.items()))
        some = newest.order_by(runs.c.created_at.desc()).limit(_CHOICES).subquery()
        with self._read() as connection:
            rows = connection.execute(select(some).distinct()).all()
        return {key: sorted({getattr(row, key) for row in rows} - {""}) for key in columns}

    @staticmethod
    def _few(connection: Connection, match: list[ColumnElement[bool]]) -> list[tuple[str, str | None]] | None:
        """Return (run, status) of all matching runs, newest first; None if there are many.

        A text that few runs match is searched in all runs: once, instead of once for the counts and once for the
        page.
        """
        query = select(runs.c.id, runs.c.status).where(*match).order_by(*_NEWEST).limit(_FEW + 1)
        matching = [(run_id, status) for run_id, status in connection.execute(query)]
        return matching if len(matching) <= _FEW else None

    def losses(self, run_id: str) -> list[LossPoint]:
        """Return training losses of each step's last attempt, by step, node, rank and in the order they were
        logged.

        A series that was rolled up returns none.
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
                LossPoint(step, node, rank, ordinal, value_of(encoded), epoch, iteration)
                for step, node, rank, samples in connection.execute(query.order_by(*columns[:3]))
                for ordinal, encoded, epoch, iteration, *_ in packed_of(samples)
            ]

    def lead_losses(self, run_id: str) -> dict[str, list[float]]:
        """Return the training losses of the first rank of each step that logs any, in logged order; with nan and
        inf.

        Of a step that logs no metric `loss`, the loss that the training minimizes as a whole is returned. A series
        that was rolled up returns none.
        """
        columns = [series.c[name] for name in ("step", "rank", "node", "metric", "attempt")]
        train = (series.c.leg == "", series.c.phase == "train", series.c.samples.is_not(None))
        leads: dict[str, tuple[Any, ...]] = {}
        with self._read() as connection:
            rows = connection.execute(last_attempts(select(*columns), run_id).where(*train)).all()
            for step in dict.fromkeys(row[0] for row in rows):
                name = objective(row[3] for row in rows if row[0] == step and is_loss(row[3]))
                own = [row for row in rows if row[0] == step and row[3] == name]
                if own:
                    leads[step] = min(own)
            losses = {}
            for step, lead in leads.items():
                same = [column == value for column, value in zip(columns, lead, strict=True)]
                samples = connection.execute(select(series.c.samples).where(series.c.run == run_id, *train, *same))
                losses[step] = values_of(samples.scalar_one())
        return losses


_COLUMNS = [
    func.substr(column, 1, REASON).label("reason") if column.name == "reason" else column for column in runs.c
]


def _newest(table: FromClause) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return (table.c.created_at.desc(), table.c.id.desc())


_NEWEST = _newest(runs)
_STATUS: dict[str | None, Status | None] = {None: None} | {status.value: status for status in Status}


def _match(wanted: RunFilter, dialect: str) -> list[ColumnElement[bool]]:
    """Return all filters except the status."""
    exact = {name: getattr(wanted, name) for name in ("suite", "chain", "mode", "cluster", "environment")}
    exact["framework"] = wanted.build
    conditions = [runs.c[name] == value for name, value in exact.items() if value]
    if wanted.node:
        conditions.append(type_coerce(runs.c.nodes, Text).contains(dumps(wanted.node), autoescape=True))
    if wanted.since is not None:
        conditions.append(runs.c.created_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(runs.c.created_at <= wanted.until)
    return [*conditions, *(_contains(word, dialect) for word in wanted.text.split())]


def _contains(word: str, dialect: str) -> ColumnElement[bool]:
    """Whether a searched column contains a word, in any case.

    Only of ASCII letters is the case ignored: by LIKE in SQLite, and by ILIKE in PostgreSQL's collation C, where
    ILIKE takes half of the time. PostgreSQL searches the columns as one text, which has an index of trigrams
    where the extension is installed (migration 0013); a word has no spaces, so it never matches across columns.
    """
    if dialect == "sqlite":
        return or_(*(runs.c[name].contains(word, autoescape=True) for name in SEARCHED))
    pattern = f"%{word.replace('/', '//').replace('%', '/%').replace('_', '/_')}%"
    return collate(_SEARCHED_TEXT, "C").ilike(pattern, escape="/")


def _of_status(status: str) -> list[ColumnElement[bool]]:
    if not status:
        return []
    return [runs.c.status.is_(None) if status == "running" else runs.c.status == status]


def _latest(wanted: RunFilter, dialect: str) -> Select[Any]:
    """Select the newest run of each chain, if it matches; the text filter applies to newest runs only.

    The query steps through an index from chain to chain, so its cost is proportional to the number of
    chains; a maximum over all runs, or numbering them, costs as much as there are runs.
    """
    return _NEWEST_OF_CHAINS.where(*_match(wanted, dialect)).order_by(*_NEWEST)


def _newest_of_chains() -> Select[Any]:
    names = select(func.min(runs.c.chain).label("chain")).cte("names", recursive=True)
    following = select(func.min(_OTHER.c.chain)).where(_OTHER.c.chain > names.c.chain).scalar_subquery()
    names = names.union_all(select(following).where(names.c.chain.is_not(None)))
    own = select(_OTHER.c.id).where(_OTHER.c.chain == names.c.chain, _OTHER.c.trigger.not_in(SIDE_RUNS))
    newest = own.order_by(*_newest(_OTHER)).limit(1).scalar_subquery()
    columns = (runs.c.id, runs.c.chain, runs.c.status, (runs.c.ended_at - runs.c.created_at).label("spent_s"))
    return select(*columns).select_from(names.join(runs, runs.c.id == newest))


def _shown(ids: list[str]) -> Select[Any]:
    return select(*_COLUMNS).where(runs.c.id.in_(ids))


def _strips(history: int) -> Select[Any]:
    """Select the newest runs of the chains of given runs (`ids`), newest first; a few more if times are equal."""
    last = select(_OTHER.c.created_at).where(_OTHER.c.chain == _LAST.c.chain, _OTHER.c.trigger.not_in(SIDE_RUNS))
    last = last.order_by(*_newest(_OTHER))
    since = func.coalesce(last.limit(1).offset(max(history, 1) - 1).scalar_subquery(), 0.0)
    own = and_(runs.c.chain == _LAST.c.chain, runs.c.created_at >= since, runs.c.trigger.not_in(SIDE_RUNS))
    columns = (runs.c.id, runs.c.chain, runs.c.status, runs.c.created_at)
    query = select(*columns).select_from(_LAST.join(runs, own))
    return query.where(_LAST.c.id.in_(bindparam("ids", expanding=True))).order_by(*_NEWEST)


def _word(status: str | None) -> str:
    return status or "running"


def _severity(status: str | None) -> float:
    return Status.IMPROVEMENT.severity + 0.5 if status is None else Status(status).severity


def _counts(rows: Iterable[Sequence[Any]]) -> dict[str, int]:
    return dict(Counter(_word(row[2]) for row in rows))


# Sort keys of rows of `_latest`.
_ORDERS: dict[str, Callable[[Any], Any]] = {
    "worst": lambda row: -_severity(row.status),
    "chain": lambda row: row.chain,
    "longest": lambda row: -(row.spent_s or 0.0),
}


def _run(row: RowMapping) -> Run:
    return Run.model_validate(dict(row))


# Created once: an alias has all columns of its table, and creating it takes longer than the query.
_OTHER, _LAST = runs.alias(), runs.alias()
_NEWEST_OF_CHAINS = _newest_of_chains()
