"""Alerts: metrics that a check found worse or better than before, in runs that may be the state of their line."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from tipcflow.domain import Status
from tipcflow.domain.numbers.measured import Measured
from tipcflow.store.base import Part
from tipcflow.store.run.line_states import is_state
from tipcflow.store.schema import baselines, check_results, runs

ALERTS = (Status.REGRESSION, Status.UNCONFIRMED, Status.IMPROVEMENT)
# Runs whose checks judged all metrics, and failed runs, whose checks may have.
_JUDGED = (*ALERTS, Status.PASS, Status.FAILED)
_MAY_ALERT = (*ALERTS, Status.FAILED)
# Characters of a reason; the run's own page shows the whole reason.
_REASON = 400
# Databases limit the number of values in a query.
_AT_ONCE = 500


@dataclass(frozen=True)
class Alert:
    """A result of a check about a metric that changed.

    Attributes:
        ratio: value / baseline; None if the check has none.
    """

    run: str
    step: str
    leg: str
    metric: str
    status: Status
    reason: str
    ratio: float | None


@dataclass(frozen=True)
class Judged:
    """A run whose metrics were judged, without the parts that do not identify its origin."""

    id: str
    chain: str
    suite: str
    mode: str
    cluster: str
    environment: str
    status: Status
    framework: str
    suite_commit: str
    suite_sha256: str
    created_at: float


@dataclass(frozen=True)
class Decision:
    """A user's decision about the baseline of a metric; a value of nan resets it."""

    chain: str
    mode: str
    environment: str
    step: str
    leg: str
    metric: str
    run: str
    who: str
    why: str
    accepted_at: float


class Alerts(Part):
    """Read-only queries; their cost depends on the number of alerts and on the runs of chains that have some."""

    def since(self, since: float) -> list[Alert]:
        """Return the alerts of runs that began since a time, in seconds since the epoch."""
        columns: list[Any] = [check_results.c[name] for name in ("run", "step", "leg", "metric", "status")]
        columns += [func.substr(check_results.c.reason, 1, _REASON), check_results.c.details]
        own = select(runs.c.id).where(runs.c.status.in_(_MAY_ALERT), runs.c.created_at >= since, *is_state(runs))
        query = (
            select(*columns)
            .where(check_results.c.run.in_(own), check_results.c.status.in_(ALERTS), check_results.c.metric != "")
            .order_by(check_results.c.run, check_results.c.position)
        )
        with self._read() as connection:
            return [
                Alert(run, step, leg, metric, Status(status), reason, _ratio(details))
                for run, step, leg, metric, status, reason, details in connection.execute(query).all()
            ]

    def judged(self, chains: Collection[str], since: float) -> list[Judged]:
        """Return the judged runs of chains since a time, oldest first."""
        columns = [runs.c[name] for name in Judged.__dataclass_fields__]
        names = sorted(chains)
        rows: list[Any] = []
        with self._read() as connection:
            for start in range(0, len(names), _AT_ONCE):
                query = select(*columns).where(
                    runs.c.chain.in_(names[start : start + _AT_ONCE]),
                    runs.c.created_at >= since,
                    runs.c.status.in_(_JUDGED),
                    *is_state(runs),
                )
                rows += connection.execute(query).mappings().all()
        judged = [Judged(**{**row, "status": Status(row["status"])}) for row in rows]
        return sorted(judged, key=lambda run: (run.created_at, run.id))

    def chains_of(self, run_ids: Collection[str]) -> dict[str, str]:
        """Return run -> its chain."""
        ids = sorted(run_ids)
        known: dict[str, str] = {}
        with self._read() as connection:
            for start in range(0, len(ids), _AT_ONCE):
                query = select(runs.c.id, runs.c.chain).where(runs.c.id.in_(ids[start : start + _AT_ONCE]))
                known |= {row[0]: row[1] for row in connection.execute(query)}
        return known

    def decisions(self, since: float) -> list[Decision]:
        """Return the decisions about baselines since a time, oldest first."""
        columns = [baselines.c[name] for name in Decision.__dataclass_fields__]
        query = select(*columns).where(baselines.c.accepted_at >= since)
        with self._read() as connection:
            rows = connection.execute(query.order_by(baselines.c.accepted_at, baselines.c.ordinal)).mappings()
            return [Decision(**row) for row in rows]


def _ratio(details: Any) -> float | None:
    return Measured(details).ratio if isinstance(details, Mapping) else None
