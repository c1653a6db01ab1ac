"""The speed of nodes over time, as it was last found."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from tipcflow.store.base import Part, upsert
from tipcflow.store.schema import node_histories


class NodeHistories(Part):
    """Table node_histories: a report per cluster and period, which replaces the previous one."""

    def get(self, cluster: str, days: float, *, since: float) -> Mapping[str, Any] | None:
        """Return the newest report, None without one of that time or later.

        Args:
            cluster: '' for all clusters.
            days: the period of its runs.
            since: seconds since the epoch.
        """
        table = node_histories.c
        query = select(table.body).where(table.cluster == cluster, table.days == days, table.at >= since)
        with self._read() as connection:
            body = connection.execute(query).scalar()
        return body if isinstance(body, Mapping) else None

    def put(self, cluster: str, days: float, at: float, body: Mapping[str, Any]) -> None:
        """Store a report in place of the previous one."""
        row = {"cluster": cluster, "days": days, "at": at, "body": dict(body)}
        with self._write() as connection:
            connection.execute(upsert(connection, node_histories), row)
