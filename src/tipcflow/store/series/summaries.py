"""Run statistics from the summaries of their series; raw samples are read only if a median requires them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from tipcflow.store.base import StoreBase
from tipcflow.store.schema import attempts, runs, series
from tipcflow.store.series.packing import percentile, values_of

_OF_RUN = ("id", "created_at", "status", "mode", "environment", "framework", "suite_commit")
_OF_SERIES = ("step", "leg", "node", "rank", "phase", "unit", "n", "finite")
_STATISTICS = ("mean", "median", "p10", "p90", "lowest", "highest")


@dataclass(frozen=True)
class Asked:
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


class SummariesMixin(StoreBase):
    """Reads table series through its summaries."""

    def leg_medians(self, run_id: str) -> dict[tuple[str, str, str], float]:
        """Return (step, leg, metric) -> median over the samples of the step's last attempt; nan and inf are
        excluded."""
        columns = [series.c[name] for name in ("step", "leg", "metric", "finite", *_STATISTICS, "samples")]
        query = last_attempts(select(*columns), run_id).where(series.c.leg != "", series.c.finite > 0)
        found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
        with self._read() as connection:
            for row in connection.execute(query).mappings():
                found.setdefault((row["step"], row["leg"], row["metric"]), []).append(dict(row))
        return {key: pooled(several)["median"] for key, several in found.items()}

    def chains(self) -> list[str]:
        """Return the names of all chains with runs, sorted."""
        with self._read() as connection:
            return sorted(connection.execute(select(runs.c.chain).distinct()).scalars())

    def history_rows(self, asked: Asked, *, each: bool = False) -> list[dict[str, Any]]:
        """Return a metric in each run of a chain, oldest run first: one row per run, step, leg and phase.

        Args:
            each: one row per process (node and rank) instead, which is faster for runs with many samples.
        """
        own = [runs.c[name] for name in _OF_RUN]
        columns = [series.c[name] for name in (*_OF_SERIES, *_STATISTICS, "rolled_up_at")]
        raw = [] if each else [series.c.samples]
        query = select(*own, *columns, *raw).join(series, series.c.run == runs.c.id).where(*_match(asked))
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


def pooled(several: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Pool several series: the statistics over all their finite samples.

    If samples were rolled up, the percentiles are those of the series' medians, each weighted by its number
    of samples; all other statistics are exact.
    """
    known = [one for one in several if one["finite"]]
    if not known:
        return dict.fromkeys(_STATISTICS, math.nan)
    if len(known) == 1:
        return {name: known[0][name] for name in _STATISTICS}
    values: list[float] = []
    for one in known:
        raw = one["samples"]
        values += [one["median"]] * one["finite"] if raw is None else filter(math.isfinite, values_of(raw))
    values.sort()
    count = sum(one["finite"] for one in known)
    return {
        "mean": sum(one["mean"] * one["finite"] for one in known) / count,
        "median": median(values),
        "p10": percentile(values, 0.1),
        "p90": percentile(values, 0.9),
        "lowest": min(one["lowest"] for one in known),
        "highest": max(one["highest"] for one in known),
    }


def _match(asked: Asked) -> list[ColumnElement[bool]]:
    later = attempts.alias()
    last = select(func.max(later.c.attempt)).where(later.c.run == series.c.run, later.c.step == series.c.step)
    found = [
        runs.c.chain == asked.chain,
        series.c.metric == asked.metric,
        or_(series.c.step == asked.step, series.c.step.endswith(f"/{asked.step}", autoescape=True)),
        series.c.attempt == last.scalar_subquery(),
    ]
    if asked.environment:
        # A class contains a slash, a word of a class does not.
        whole = "/" in asked.environment
        own = runs.c.environment
        found.append(own == asked.environment if whole else own.icontains(asked.environment, autoescape=True))
    if asked.leg is not None:
        found.append(series.c.leg == asked.leg)
    if asked.phase:
        found.append(series.c.phase == asked.phase)
    if asked.mode:
        found.append(runs.c.mode == asked.mode)
    if asked.since is not None:
        found.append(runs.c.created_at >= asked.since)
    return found


def _by_run(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per run, step, leg and phase."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["id"], row["step"], row["leg"], row["phase"]), []).append(row)
    return [_one(several) for several in found.values()]


def _one(several: list[dict[str, Any]]) -> dict[str, Any]:
    shared = {name: several[0][name] for name in (*_OF_RUN, "step", "leg", "phase", "unit")}
    counts = {"processes": len(several), "n": sum(one["n"] for one in several)}
    rolled = any(one["rolled_up_at"] is not None for one in several)
    return {**shared, **counts, **pooled(several), "rolled_up": rolled}
