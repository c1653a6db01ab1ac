"""Loads the matrix of models."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tipcflow.domain import Status
from tipcflow.domain.run.names import ChainName
from tipcflow.execute.overview.declared import split_by_name
from tipcflow.report.overview.matrix import (
    BUILD,
    VARIANT,
    Matrix,
    MatrixRow,
    Outcome,
    frequent_first,
    make_row,
    worst_models,
)
from tipcflow.report.overview.today import GREEN

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.states import Line

By = Literal["build", "environment", "mode", "variant"]
MOST_COLUMNS, MOST_ROWS = 30, 200


@dataclass(frozen=True)
class Grid:
    """Which rows and columns a matrix has; '' includes all.

    Attributes:
        by: kind of the columns; `columns` is their largest number.
        chain: part of a chain's name, in any case.
        problems: whether only models with a run that does not pass are included.
    """

    by: By = "build"
    columns: int = 12
    suite: str = ""
    chain: str = ""
    problems: bool = False


def load_matrix(
    store: "Store", grid: Grid = Grid(), *, limit: int | None = None, offset: int = 0, now: float | None = None
) -> Matrix:
    """Return the matrix, with the worst models first.

    Args:
        limit: number of rows; None for all.
        now: seconds since the epoch; None for the database's clock.
    """
    lines: dict[str, list[Line]] = defaultdict(list)
    part = grid.chain.lower()
    named, unnamed = split_by_name(
        line
        for line in store.states.lines()
        if grid.suite in ("", line.suite) and (not part or part in line.chain.lower())
    )
    for line in named:
        lines[ChainName.parse(line.chain).model_name].append(line)
    states = {model: [line.status for line in members] for model, members in lines.items()}
    every = [line for members in lines.values() for line in members]
    marked = store.check_history.quarantined([line.run for line in every if line.status in GREEN])
    passing = sum(
        all(line.status in GREEN and line.run not in marked for line in members) for members in lines.values()
    )
    models = worst_models(states)
    if grid.problems:
        models = [model for model in models if not all(status in GREEN for status in states[model])]
    shown = models[offset:] if limit is None else models[offset : offset + limit]
    outcomes, columns = _outcomes(store, grid, [line for model in shown for line in lines[model]])
    rows = [_row(lines[model], outcomes, columns) for model in shown]
    return Matrix(
        at=store.now() if now is None else now,
        by=grid.by,
        columns=columns,
        models=len(states),
        passing=passing,
        total=len(models),
        rows=tuple(rows),
        unnamed=unnamed,
    )


def _row(lines: Sequence["Line"], outcomes: dict[str, list[Outcome]], columns: Sequence[str]) -> MatrixRow:
    chains = list(dict.fromkeys(line.chain for line in lines))
    own = [outcome for chain in chains for outcome in outcomes.get(chain, ()) if outcome.column in columns]
    return make_row(chains, [line.status for line in lines], own)


def _outcomes(
    store: "Store", grid: Grid, lines: Sequence["Line"]
) -> tuple[dict[str, list[Outcome]], tuple[str, ...]]:
    """Return chain -> its outcomes, and the columns."""
    chosen = min(grid.columns, MOST_COLUMNS)
    columns: tuple[str, ...] = ()
    if grid.by == BUILD:
        columns = tuple(store.matrix.builds(chosen))
        outcomes: Iterable[Outcome] = _of_builds(store, lines, columns)
    elif grid.by == VARIANT:
        outcomes = _of_variants(store, lines)
    else:
        outcomes = (
            _outcome(line, line.mode if grid.by == "mode" else line.environment or "unknown") for line in lines
        )
    by_chain: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_chain[outcome.chain].append(outcome)
    if grid.by != BUILD:
        columns = frequent_first(([outcome.column for outcome in own] for own in by_chain.values()), chosen)
    return by_chain, columns


def _outcome(line: "Line", column: str) -> Outcome:
    return Outcome(column=column, chain=line.chain, status=line.status, run=line.run, started_at=line.created_at)


def _of_builds(store: "Store", lines: Sequence["Line"], builds: Sequence[str]) -> Iterator[Outcome]:
    """Yield the newest run of each chain, mode, environment class and build."""
    seen = set()
    for run in store.matrix.of_builds({line.chain for line in lines}, builds):
        key = (run.chain, run.mode, run.environment, run.framework)
        if key not in seen:
            seen.add(key)
            yield Outcome(
                column=run.framework, chain=run.chain, status=run.status, run=run.run, started_at=run.created_at
            )


def _of_variants(store: "Store", lines: Sequence["Line"]) -> Iterator[Outcome]:
    """Yield the worst step of each variant of the newest runs."""
    by_run = {line.run: line for line in lines}
    worst: dict[tuple[str, str], Status] = {}
    for step in store.matrix.variants(by_run):
        key = (step.run, step.variant)
        # A step that its node cannot run does not affect the variant's other steps.
        if step.status is not Status.NOT_RUN or key not in worst:
            known = worst.get(key, Status.PASS)
            is_worse = step.status.severity > known.severity or known is Status.NOT_RUN
            worst[key] = step.status if key not in worst or is_worse else known
    for (run, variant), status in worst.items():
        line = by_run[run]
        yield Outcome(column=variant, chain=line.chain, status=status, run=run, started_at=line.created_at)
