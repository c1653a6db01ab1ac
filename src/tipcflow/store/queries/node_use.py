"""Which runs used which nodes, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Text, func, or_, select, type_coerce

from tipcflow.domain import Status
from tipcflow.domain.numbers.measured import Measured
from tipcflow.domain.numbers.metrics import PROBES
from tipcflow.store.base import Part
from tipcflow.store.queries.operation import NodeKey, lost_steps
from tipcflow.store.schema import attempts, check_results, runs, series
from tipcflow.store.types import loads

# A run that began earlier than this before a period is not searched in it.
_LONGEST_S = 4 * 86_400.0
# Runs in which the names of clusters are searched.
_NEWEST = 2000
_STATUS: dict[str | None, Status | None] = {None: None} | {status.value: status for status in Status}


class Use(NamedTuple):
    """A run on its nodes; a tuple, because pages create thousands of them.

    Attributes:
        status: None while it is running.
        started_at: start of its first step; without one, the run used no node.
        ended_at: None while it is running.
    """

    run: str
    chain: str
    mode: str
    cluster: str
    nodes: tuple[str, ...]
    status: Status | None
    started_at: float
    ended_at: float | None


@dataclass(frozen=True)
class Probe:
    """A probe of a node during a run: the mean of its medians in the steps of the run, in seconds."""

    cluster: str
    node: str
    metric: str
    run: str
    at: float
    value: float


@dataclass(frozen=True)
class Ratio:
    """A metric of a run with its baseline.

    Attributes:
        cluster, nodes: of the run.
        ratio: value / baseline.
    """

    cluster: str
    nodes: tuple[str, ...]
    run: str
    at: float
    metric: str
    ratio: float


class NodeUse(Part):
    """Read-only queries; their cost depends on the number of runs in a period, not on the number of samples."""

    def runs(self, since: float, until: float, *, cluster: str = "") -> list[Use]:
        """Return the runs that used nodes in a period, in the order in which they started.

        Args:
            since, until: seconds since the epoch.
            cluster: '' for all.
        """
        began = select(func.min(attempts.c.started_at)).where(attempts.c.run == runs.c.id).scalar_subquery()
        # As text, because few lists of nodes differ: reading each as JSON takes as long as the query.
        nodes = type_coerce(runs.c.nodes, Text)
        columns = [runs.c[name] for name in ("id", "chain", "mode", "cluster")]
        query = select(*columns, nodes, runs.c.status, began, runs.c.ended_at).where(
            runs.c.created_at >= since - _LONGEST_S,
            runs.c.created_at < until,
            or_(runs.c.ended_at.is_(None), runs.c.ended_at >= since),
        )
        if cluster:
            query = query.where(runs.c.cluster == cluster)
        with self._read() as connection:
            rows: Sequence[Any] = connection.execute(query).all()
        known = {text: tuple(loads(text)) for text in {row[4] for row in rows}}
        uses = [
            Use(run, chain, mode, place, known[text], _STATUS[status], started_at, ended_at)
            for run, chain, mode, place, text, status, started_at, ended_at in rows
            if started_at is not None and started_at < until
        ]
        return sorted(uses, key=lambda use: (use.started_at, use.run))

    def lost(self, since: float) -> Mapping[NodeKey, int]:
        """Return (cluster, node) -> number of steps of runs since then that ended because the node was lost."""
        with self._read() as connection:
            return lost_steps(connection, since)

    def clusters(self) -> list[str]:
        """Return the clusters of the newest runs, by name."""
        newest = select(runs.c.cluster).order_by(runs.c.created_at.desc()).limit(_NEWEST).subquery()
        with self._read() as connection:
            return sorted(connection.execute(select(newest.c.cluster).distinct()).scalars())

    def probes(self, since: float, *, cluster: str = "") -> list[Probe]:
        """Return the probes in ended runs that began since a time, oldest first.

        Args:
            cluster: '' for all.
        """
        columns = (runs.c.cluster, series.c.node, series.c.metric, runs.c.id, runs.c.created_at)
        query = (
            select(*columns, func.avg(series.c.median))
            .join(runs, runs.c.id == series.c.run)
            .where(*_ended(since, cluster), series.c.metric.in_(PROBES), series.c.median.is_not(None))
            .group_by(*columns)
            .order_by(runs.c.created_at, runs.c.id)
        )
        with self._read() as connection:
            return [Probe(*row) for row in connection.execute(query).all()]

    def ratios(self, since: float, *, cluster: str = "") -> list[Ratio]:
        """Return the metrics with a baseline of ended runs that began since a time, oldest first.

        Args:
            cluster: '' for all.
        """
        columns = [
            *(runs.c[name] for name in ("cluster", "nodes", "id", "created_at")),
            *(check_results.c[name] for name in ("metric", "details")),
        ]
        query = (
            select(*columns)
            .join(check_results, check_results.c.run == runs.c.id)
            .where(*_ended(since, cluster), check_results.c.metric != "")
            .order_by(runs.c.created_at, runs.c.id)
        )
        ratios = []
        with self._read() as connection:
            for place, nodes, run, at, metric, details in connection.execute(query):
                ratio = Measured(details).ratio if isinstance(details, Mapping) else None
                if ratio is not None and ratio > 0:
                    ratios.append(Ratio(place, tuple(nodes), run, at, metric, ratio))
        return ratios


def _ended(since: float, cluster: str) -> list[Any]:
    conditions = [runs.c.created_at >= since, runs.c.ended_at.is_not(None)]
    return [*conditions, runs.c.cluster == cluster] if cluster else conditions
