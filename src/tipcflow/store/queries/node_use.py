"""Which runs used which nodes, and when."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import func, or_, select

from tipcflow.domain import Status
from tipcflow.store.base import Part
from tipcflow.store.queries.operation import lost_steps
from tipcflow.store.schema import attempts, runs

# A run that began earlier than this before a period is not searched in it.
_LONGEST_S = 4 * 86_400.0
# Runs in which the names of clusters are searched.
_NEWEST = 2000


@dataclass(frozen=True)
class Use:
    """A run on its nodes.

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


class NodeUse(Part):
    """Read-only queries; their cost depends on the number of runs in a period, not on the number of samples."""

    def runs(self, since: float, until: float, *, cluster: str = "") -> list[Use]:
        """Return the runs that used nodes in a period, in the order in which they started.

        Args:
            since, until: seconds since the epoch.
            cluster: '' for all.
        """
        began = select(func.min(attempts.c.started_at)).where(attempts.c.run == runs.c.id).scalar_subquery()
        columns = ("id", "chain", "mode", "cluster", "nodes", "status")
        query = select(*(runs.c[name] for name in columns), began.label("started_at"), runs.c.ended_at).where(
            runs.c.created_at >= since - _LONGEST_S,
            runs.c.created_at < until,
            or_(runs.c.ended_at.is_(None), runs.c.ended_at >= since),
        )
        if cluster:
            query = query.where(runs.c.cluster == cluster)
        with self._read() as connection:
            rows = connection.execute(query).all()
        uses = [
            Use(
                run=row.id,
                chain=row.chain,
                mode=row.mode,
                cluster=row.cluster,
                nodes=tuple(row.nodes),
                status=Status(row.status) if row.status else None,
                started_at=row.started_at,
                ended_at=row.ended_at,
            )
            for row in rows
            if row.started_at is not None and row.started_at < until
        ]
        return sorted(uses, key=lambda use: (use.started_at, use.run))

    def lost(self, since: float) -> Mapping[str, int]:
        """Return node -> number of steps of runs since then that ended because the node was lost."""
        with self._read() as connection:
            return lost_steps(connection, since)

    def clusters(self) -> list[str]:
        """Return the clusters of the newest runs, by name."""
        newest = select(runs.c.cluster).order_by(runs.c.created_at.desc()).limit(_NEWEST).subquery()
        with self._read() as connection:
            return sorted(connection.execute(select(newest.c.cluster).distinct()).scalars())
