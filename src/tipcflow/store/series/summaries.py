"""Run statistics from the summaries of their series; raw samples are read only if a median requires them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from tipcflow.domain import MetricKey
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import Part
from tipcflow.store.schema import attempts, runs, series
from tipcflow.store.series.packing import percentile, values_of

_OF_RUN = ("id", "created_at", "status", "mode", "environment", "framework", "suite_commit")
_OF_SERIES = ("step", "leg", "node", "rank", "phase", "unit", "n", "finite")
_STATISTICS = ("mean", "median", "p10", "p90", "lowest", "highest")


@dataclass(frozen=True)
class SummaryQuery:
    """Filter of a history; '' or None matches any value.

    Attributes:
        step: a step's id, or its last part (`train`).
        environment: an environment class, or a word of one (`v100`).
        since: seconds since the epoch; older runs are excluded.
    """

    chain: str
    step: str
    metric: str
    environment: str = ""
    leg: str | None = None
    phase: str = ""
    mode: str = ""
    since: float | None = None


class Summaries(Part):
    """Reads table series through its summaries."""

    def leg_medians(self, run_id: str) -> dict[MetricKey, float]:
        """Return key -> median over the samples of the step's last attempt; nan and inf are
        excluded."""
        columns = [series.c[name] for name in ("step", "leg", "metric", "finite", *_STATISTICS, "samples")]
        query = last_attempts(select(*columns), run_id).where(series.c.leg != "", series.c.finite > 0)
        rows_by_key: dict[MetricKey, list[Mapping[str, Any]]] = {}
        with self._read() as connection:
            for row in connection.execute(query).mappings():
                rows_by_key.setdefault(MetricKey(row["step"], row["leg"], row["metric"]), []).append(dict(row))
        return {key: pooled(rows)["median"] for key, rows in rows_by_key.items()}

    def history_rows(self, wanted: SummaryQuery, *, each: bool = False) -> list[dict[str, Any]]:
        """Return a metric in each run of a chain, oldest run first: one row per run, step, leg and phase.

        Args:
            each: one row per process (node and rank) instead, which is faster for runs with many samples.
        """
        own = [runs.c[name] for name in _OF_RUN]
        columns = [series.c[name] for name in (*_OF_SERIES, *_STATISTICS, "rolled_up_at")]
        raw = [] if each else [series.c.samples]
        query = select(*own, *columns, *raw).join(series, series.c.run == runs.c.id).where(*_match(wanted))
        order = (
            runs.c.created_at,
            runs.c.id,
            *(series.c[name] for name in ("step", "leg", "phase", "node", "rank")),
        )
        with self._read() as connection:
            rows = [dict(row) for row in connection.execute(query.order_by(*order)).mappings()]
        return rows if each else _by_run(rows)


def last_attempts(query: Select[Any], run_id: str) -> Select[Any]:
    """Restrict a query to the last attempt of each step."""
    last = select(attempts.c.step, func.max(attempts.c.attempt).label("attempt"))
    own = last.where(attempts.c.run == run_id).group_by(attempts.c.step).subquery()
    same = and_(series.c.step == own.c.step, series.c.attempt == own.c.attempt)
    return query.join(own, same).where(series.c.run == run_id)


def pooled(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Pool several series: the statistics over all their finite samples.

    If samples were rolled up, the percentiles are those of the series' medians, each weighted by its number
    of samples; all other statistics are exact.
    """
    finite = [row for row in rows if row["finite"]]
    if not finite:
        return dict.fromkeys(_STATISTICS, math.nan)
    if len(finite) == 1:
        return {name: finite[0][name] for name in _STATISTICS}
    values: list[float] = []
    for row in finite:
        raw = row["samples"]
        values += [row["median"]] * row["finite"] if raw is None else filter(math.isfinite, values_of(raw))
    values.sort()
    count = sum(row["finite"] for row in finite)
    return {
        "mean": sum(row["mean"] * row["finite"] for row in finite) / count,
        "median": median(values),
        "p10": percentile(values, 0.1),
        "p90": percentile(values, 0.9),
        "lowest": min(row["lowest"] for row in finite),
        "highest": max(row["highest"] for row in finite),
    }


def _match(query: SummaryQuery) -> list[ColumnElement[bool]]:
    later = attempts.alias()
    last = select(func.max(later.c.attempt)).where(later.c.run == series.c.run, later.c.step == series.c.step)
    conditions = [
        runs.c.chain == query.chain,
        series.c.metric == query.metric,
        runs.c.trigger.not_in(SIDE_RUNS),
        or_(series.c.step == query.step, series.c.step.endswith(f"/{query.step}", autoescape=True)),
        series.c.attempt == last.scalar_subquery(),
    ]
    if query.environment:
        # A class contains a slash, a word of a class does not.
        whole = "/" in query.environment
        own = runs.c.environment
        conditions.append(own == query.environment if whole else own.icontains(query.environment, autoescape=True))
    if query.leg is not None:
        conditions.append(series.c.leg == query.leg)
    if query.phase:
        conditions.append(series.c.phase == query.phase)
    if query.mode:
        conditions.append(runs.c.mode == query.mode)
    if query.since is not None:
        conditions.append(runs.c.created_at >= query.since)
    return conditions


def _by_run(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per run, step, leg and phase."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["id"], row["step"], row["leg"], row["phase"]), []).append(row)
    return [_run_row(group) for group in groups.values()]


def _run_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    shared = {name: rows[0][name] for name in (*_OF_RUN, "step", "leg", "phase", "unit")}
    counts = {"processes": len(rows), "n": sum(row["n"] for row in rows)}
    rolled = any(row["rolled_up_at"] is not None for row in rows)
    return {**shared, **counts, **pooled(rows), "rolled_up": rolled}
