"""Alerts: metrics that a check found worse or better than before, in runs that may be the state of their line."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Text, func, select, text, type_coerce

from tipcflow.domain import Status
from tipcflow.domain.numbers.measured import Measured
from tipcflow.store.base import Part, among
from tipcflow.store.run.line_states import is_state
from tipcflow.store.schema import MAY_ALERT, baselines, check_results, runs
from tipcflow.store.types import loads

ALERTS = (Status.REGRESSION, Status.UNCONFIRMED, Status.IMPROVEMENT)
# Runs whose checks judged all metrics, and failed runs, whose checks may have.
_JUDGED = (*ALERTS, Status.PASS, Status.FAILED)
# Without parameters, with which SQLite does not use the index of these runs.
_MAY_ALERT = text(MAY_ALERT)
# Characters of a reason; the run's own page shows the whole reason.
_REASON = 400
_STATUS = {status.value: status for status in Status}


class Alert(NamedTuple):
    """A result of a check about a metric that changed.

    A tuple with unread JSON, because the page of changes creates thousands of them and shows few.
    """

    run: str
    step: str
    leg: str
    metric: str
    status: Status
    reason: str
    details: str | None

    @property
    def ratio(self) -> float | None:
        """Value / baseline; None if the check has none."""
        details = loads(self.details) if self.details else None
        return Measured(details).ratio if isinstance(details, Mapping) else None


class Judged(NamedTuple):
    """A run whose metrics were judged, without the parts that do not identify its origin.

    A tuple, because the page of changes creates thousands of them.
    """

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
        columns += [func.substr(check_results.c.reason, 1, _REASON), type_coerce(check_results.c.details, Text)]
        own = select(runs.c.id).where(_MAY_ALERT, runs.c.created_at >= since, *is_state(runs))
        query = (
            select(*columns)
            .where(check_results.c.run.in_(own), check_results.c.status.in_(ALERTS), check_results.c.metric != "")
            .order_by(check_results.c.run, check_results.c.position)
        )
        with self._read() as connection:
            return [
                Alert(run, step, leg, metric, _STATUS[status], reason, details)
                for run, step, leg, metric, status, reason, details in connection.execute(query).all()
            ]

    def judged(self, chains: Collection[str], since: float) -> list[Judged]:
        """Return the judged runs of chains since a time, oldest first."""
        columns = [runs.c[name] for name in Judged._fields]
        with self._read() as connection:
            own = (among(connection, runs.c.chain, chains), runs.c.created_at >= since, *is_state(runs))
            rows: Sequence[Any] = connection.execute(
                select(*columns).where(*own, runs.c.status.in_(_JUDGED))
            ).all()
        judged = [
            Judged(run, chain, suite, mode, cluster, environment, _STATUS[status], framework, commit, sha256, at)
            for run, chain, suite, mode, cluster, environment, status, framework, commit, sha256, at in rows
        ]
        return sorted(judged, key=lambda run: (run.created_at, run.id))

    def chains_of(self, run_ids: Collection[str]) -> dict[str, str]:
        """Return run -> its chain."""
        query = select(runs.c.id, runs.c.chain)
        with self._read() as connection:
            rows = connection.execute(query.where(among(connection, runs.c.id, run_ids))).all()
        return dict(rows)

    def decisions(self, since: float) -> list[Decision]:
        """Return the decisions about baselines since a time, oldest first."""
        columns = [baselines.c[name] for name in Decision.__dataclass_fields__]
        query = select(*columns).where(baselines.c.accepted_at >= since)
        with self._read() as connection:
            rows = connection.execute(query.order_by(baselines.c.accepted_at, baselines.c.ordinal)).mappings()
            return [Decision(**row) for row in rows]
