"""Metric values of several runs, from cached documents and from the summaries of series; no sample is read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import RowMapping, Select, Subquery, and_, func, select

from tipcflow.domain import Measurement, MetricKey, PastRun, Phase, Run, numbers_of, without_repeat
from tipcflow.domain.run_documents import NumbersDocument
from tipcflow.store.base import Part
from tipcflow.store.queries.history import RULE
from tipcflow.store.schema import attempts, documents, runs, series
from tipcflow.store.series.packing import value_of

_COLUMNS = ("run", "step", "leg", "node", "rank", "metric", "phase", "median", "last")


@dataclass(frozen=True)
class RunNumbers:
    """The metric values of a run, named as in `numbers_of`.

    Attributes:
        exact: whether these are the values that checks compare. Without the cached document of the run they are
            medians of whole series: those of training speeds include the warm-up.
        confirms: the values of its confirm runs.
    """

    values: Mapping[MetricKey, float]
    exact: bool = True
    confirms: Mapping[MetricKey, tuple[float, ...]] = field(default_factory=dict)


class Numbers(Part):
    """Metric values of runs; the cost is proportional to the number of series, not of samples."""

    def of(self, run_ids: Collection[str]) -> dict[str, RunNumbers]:
        """Return the metric values of each run: of the last attempt of each step."""
        ids = sorted(run_ids)
        with self._read() as connection:
            last = _last(ids)
            same = and_(
                series.c.run == last.c.run, series.c.step == last.c.step, series.c.attempt == last.c.attempt
            )
            count = select(series.c.run, func.sum(series.c.n)).join(last, same).where(series.c.run.in_(ids))
            counts = {run_id: int(total) for run_id, total in connection.execute(count.group_by(series.c.run))}
            cached = {row.run: row.body for row in connection.execute(_documents(ids))}
            numbers = {run_id: _cached(run_id, cached.get(run_id), counts.get(run_id, 0)) for run_id in ids}
            missing = [run_id for run_id, known in numbers.items() if known is None]
            query = (
                select(*(series.c[name] for name in _COLUMNS)).join(last, same).where(series.c.run.in_(missing))
            )
            rows = connection.execute(query).mappings().all() if missing else ()
        summaries: dict[str, list[Measurement]] = {run_id: [] for run_id in missing}
        for row in rows:
            value = value_of(row["last"]) if row["phase"] == Phase.EVAL else row["median"]
            if value is not None:
                summaries[row["run"]].append(_summary(row, value))
        approximate = {run_id: RunNumbers(numbers_of(own), exact=False) for run_id, own in summaries.items()}
        return {run_id: known or approximate[run_id] for run_id, known in numbers.items()}

    def some(self, run_ids: Collection[str], keys: Collection[MetricKey]) -> dict[str, dict[MetricKey, float]]:
        """Return the cached values of a few metrics of each run; runs without a cache have none.

        Unlike `of`, this neither loads every metric of a run nor counts its samples.
        """
        wanted = {str(key): key for key in keys}
        values: dict[str, dict[MetricKey, float]] = {}
        with self._read() as connection:
            for run_id, body in connection.execute(_documents(sorted(run_ids))):
                if body is not None and body.get("rule") == RULE:
                    numbers = body.get("numbers", {})
                    values[run_id] = {key: float(numbers[text]) for text, key in wanted.items() if text in numbers}
        return values

    def units(self, run_ids: Collection[str]) -> dict[str, dict[MetricKey, str]]:
        """Return the units that the logs of each run print, by step without its repeat, leg and plain metric."""
        columns = (series.c.run, series.c.step, series.c.leg, series.c.metric, series.c.unit)
        query = select(*columns).distinct().where(series.c.run.in_(sorted(run_ids)), series.c.unit != "")
        units: dict[str, dict[MetricKey, str]] = {run_id: {} for run_id in run_ids}
        with self._read() as connection:
            for run_id, step, leg, name, unit in connection.execute(query.order_by(*columns)):
                units[run_id].setdefault(MetricKey(without_repeat(step), leg, name), unit)
        return units

    def past(self, run_ids: Collection[str]) -> dict[str, PastRun]:
        """Return runs for comparison with later runs, with metric values and without evidence and losses."""
        numbers = self.of(run_ids)
        query = select(runs.c.id, runs.c.seed, runs.c.framework, runs.c.suite_sha256).where(runs.c.id.in_(run_ids))
        with self._read() as connection:
            rows = connection.execute(query).all()
        return {
            run_id: PastRun(
                run=run_id,
                seed=seed,
                framework=framework,
                suite_sha256=suite_sha256,
                medians=dict(numbers[run_id].values),
                confirms=dict(numbers[run_id].confirms),
            )
            for run_id, seed, framework, suite_sha256 in rows
        }

    def recent(
        self, chain: str, *, mode: str, environment: str, compat: str, limit: int, side: Collection[str] = ()
    ) -> list[Run]:
        """Return the newest runs of a chain in a mode, semantics and environment class, oldest first.

        Args:
            side: triggers of runs that are not the state of the chain.
        """
        query = (
            select(runs)
            .where(runs.c.chain == chain, runs.c.mode == mode, runs.c.environment == environment)
            .where(runs.c.compat == compat, runs.c.trigger.not_in(side))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            rows = connection.execute(query).mappings().all()
        return [Run.model_validate(dict(row)) for row in reversed(rows)]

    def groups(self, chain: str, *, side: Collection[str] = ()) -> list[tuple[str, str, str, int]]:
        """Return (mode, environment class, semantics, number of runs) of a chain, the most recently used first."""
        columns = (runs.c.mode, runs.c.environment, runs.c.compat)
        query = (
            select(*columns, func.count())
            .where(runs.c.chain == chain, runs.c.trigger.not_in(side))
            .group_by(*columns)
            .order_by(func.max(runs.c.created_at).desc(), *columns)
        )
        with self._read() as connection:
            return [
                (mode, environment, compat, runs) for mode, environment, compat, runs in connection.execute(query)
            ]


def _last(ids: list[str]) -> Subquery:
    """Select the last attempt of each step of runs."""
    columns = (attempts.c.run, attempts.c.step, func.max(attempts.c.attempt).label("attempt"))
    return select(*columns).where(attempts.c.run.in_(ids)).group_by(attempts.c.run, attempts.c.step).subquery()


def _documents(ids: list[str]) -> Select[Any]:
    query = select(documents.c.run, documents.c.body)
    return query.where(documents.c.run.in_(ids), documents.c.name == NumbersDocument.NAME)


def _cached(run_id: str, body: Any, samples: int) -> RunNumbers | None:
    """Return the cached values if they are of the run's present samples by the present rule."""
    if not samples:
        return RunNumbers({})
    if body is None:
        return None
    document = NumbersDocument.load(run_id, body)
    if (document.rule, document.samples) != (RULE, samples):
        return None
    return RunNumbers(document.numbers, confirms=document.confirms)


def _summary(row: RowMapping, value: float) -> Measurement:
    names = ("run", "step", "leg", "node", "rank", "metric")
    return Measurement(**{name: row[name] for name in names}, phase=Phase(row["phase"]), value=value)
