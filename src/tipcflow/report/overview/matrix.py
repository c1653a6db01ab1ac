"""The matrix: models in rows; framework builds, environment classes, modes or variants in columns."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Status
from tipcflow.domain.run.names import ChainName
from tipcflow.report.overview.today import GREEN

BUILD, ENVIRONMENT, MODE, VARIANT = "build", "environment", "mode", "variant"
# Kind of columns -> what a column is, for readers.
COLUMNS = {
    BUILD: "framework build, the newest first",
    ENVIRONMENT: "environment class",
    MODE: "mode",
    VARIANT: "training variant",
}
# Symbol of a status: statuses differ by shape and by color. `unknown` is a status that a run cannot have.
SIGNS = {
    Status.PASS: "✓",
    Status.IMPROVEMENT: "▲",
    Status.NOT_RUN: "·",
    Status.BLOCKED: "‖",
    Status.CANCELLED: "‖",
    Status.INFRA_FAILURE: "!",
    Status.UNCONFIRMED: "?",
    Status.REGRESSION: "▼",
    Status.FAILED: "✗",
    Status.CONFIG_ERROR: "⚙",
}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cell(_Model):
    """The newest runs of a model in a column.

    Attributes:
        status: the worst one of them; `run` is the newest run with it.
        runs: number of newest runs: one per chain, mode and environment class; `bad` of them do not pass.
    """

    status: Status
    run: str
    started_at: float
    runs: int
    bad: int

    @property
    def sign(self) -> str:
        """The symbol of the status."""
        return SIGNS.get(self.status, "·")


class MatrixRow(_Model):
    """A model.

    Attributes:
        status: the worst one of the newest runs of its chains, whatever their columns.
        bad: number of these runs that do not pass.
        cells: column -> cell, without columns in which it has no run.
    """

    suite: str
    model: str
    chains: tuple[str, ...]
    status: Status
    bad: int
    cells: dict[str, Cell]

    @property
    def name(self) -> str:
        """`<suite>/<model>`."""
        return ChainName.parse(self.chains[0]).model_name


class Matrix(_Model):
    """Everything that the page and the command show.

    Attributes:
        by: kind of the columns.
        models: number of models; the newest runs of `passing` of them all pass without a quarantined failure.
        total: number of models with a row, of which `rows` may be a part.
        unnamed: a sentence per stored name that is not the name of a chain; its runs are not counted.
    """

    schema_version: int = 1
    at: float
    by: Literal["build", "environment", "mode", "variant"]
    columns: tuple[str, ...]
    models: int
    passing: int
    total: int
    rows: tuple[MatrixRow, ...]
    unnamed: tuple[str, ...] = ()


class Outcome(_Model):
    """A run of a chain in a column."""

    column: str
    chain: str
    status: Status
    run: str
    started_at: float


def make_row(chains: Sequence[str], states: Sequence[Status], outcomes: Iterable[Outcome]) -> MatrixRow:
    """Return the row of a model.

    Args:
        states: the statuses of the newest runs of its chains.
        outcomes: one per chain, mode, environment class and column.
    """
    by_column: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_column.setdefault(outcome.column, []).append(outcome)
    name = ChainName.parse(chains[0])
    return MatrixRow(
        suite=name.suite,
        model=name.model,
        chains=tuple(chains),
        status=max(states, key=lambda status: status.severity),
        bad=sum(status not in GREEN for status in states),
        cells={column: _cell(members) for column, members in by_column.items()},
    )


def _cell(outcomes: Sequence[Outcome]) -> Cell:
    worst = max(outcomes, key=lambda outcome: (outcome.status.severity, outcome.started_at))
    return Cell(
        status=worst.status,
        run=worst.run,
        started_at=worst.started_at,
        runs=len(outcomes),
        bad=sum(outcome.status not in GREEN for outcome in outcomes),
    )


def frequent_first(rows: Iterable[Iterable[str]], limit: int) -> tuple[str, ...]:
    """Return the columns that most rows have, at most `limit`, sorted by name."""
    counts = Counter(column for columns in rows for column in set(columns))
    chosen = sorted(counts, key=lambda column: (-counts[column], column))[:limit]
    return tuple(sorted(chosen))


def worst_models(states: Mapping[str, Sequence[Status]]) -> list[str]:
    """Return models by their worst status, then by the number of runs that do not pass, then by name."""

    def key(model: str) -> tuple[int, int, str]:
        worst = max([status.severity for status in states[model]])
        return -worst, -sum([status not in GREEN for status in states[model]]), model

    return sorted(states, key=key)
