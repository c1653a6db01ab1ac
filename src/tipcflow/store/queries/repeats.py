"""Runs that repeat each other: equal chain, mode, environment class, framework build and suite content."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, case, func, select, text

from tipcflow.domain import Run, Status
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import Part, among
from tipcflow.store.queries.states import KINDS
from tipcflow.store.run.line_states import GREEN
from tipcflow.store.schema import REPEATABLE, SUBJECT, runs

_BAD = (*KINDS[0], Status.FAILED)
# Without parameters, with which SQLite does not use the index of equal runs.
_REPEATABLE = text(REPEATABLE)
# Databases limit the number of values in a query.
_AT_ONCE = 500


@dataclass(frozen=True)
class Repeated:
    """The repeats of one chain.

    Attributes:
        groups: number of groups of equal runs, with at least two runs each; `mixed` of them have both outcomes.
        runs: number of runs in these groups.
        disagreeing: number of runs whose outcome is the rarer one of their group; half of a tie.
    """

    chain: str
    groups: int
    mixed: int
    runs: int
    disagreeing: int


class Repeats(Part):
    """Read-only queries over runs since a time; they read no samples."""

    def chains(self, since: float) -> list[Repeated]:
        """Return the chains that have repeats, by name. Outcomes: green, or regression, unconfirmed or failed."""
        groups = _groups(since).subquery()
        rare = case((groups.c.bad < groups.c.good, groups.c.bad), else_=groups.c.good)
        query = (
            select(
                groups.c.chain,
                func.count(),
                func.sum(case((rare > 0, 1), else_=0)),
                func.sum(groups.c.bad + groups.c.good),
                func.sum(rare),
            )
            .group_by(groups.c.chain)
            .order_by(groups.c.chain)
        )
        with self._read() as connection:
            return [
                Repeated(chain, *(int(count) for count in counts)) for chain, *counts in connection.execute(query)
            ]

    def mixed(self, since: float, chains: Collection[str]) -> list[Run]:
        """Return the runs of all groups of these chains with both outcomes, oldest first."""
        names, mixed = sorted(chains), []
        with self._read() as connection:
            for start in range(0, len(names), _AT_ONCE):
                own = runs.c.chain.in_(names[start : start + _AT_ONCE])
                groups = _groups(since).where(own).subquery()
                same = [runs.c[name] == groups.c[name] for name in SUBJECT]
                query = select(runs).join(groups, and_(*same)).where(own, groups.c.bad > 0, groups.c.good > 0)
                rows = connection.execute(query.where(*_wanted(since))).mappings()
                mixed += [Run.model_validate(dict(row)) for row in rows]
        return sorted(mixed, key=lambda run: (run.created_at, run.id))

    def by_node(self, since: float) -> list[tuple[str, tuple[str, ...], Status, int]]:
        """Return (cluster, nodes, status, number of runs) of ended runs, without side runs."""
        columns = (runs.c.cluster, runs.c.nodes, runs.c.status)
        query = (
            select(*columns, func.count())
            .where(runs.c.created_at >= since, runs.c.status.is_not(None), runs.c.trigger.not_in(SIDE_RUNS))
            .group_by(*columns)
        )
        with self._read() as connection:
            return [
                (cluster, tuple(nodes), Status(status), int(count))
                for cluster, nodes, status, count in connection.execute(query)
            ]

    def repeated_by_node(self, since: float, chains: Collection[str]) -> list[tuple[str, tuple[str, ...], int]]:
        """Return (cluster, nodes, number of runs) of the runs of these chains that have an equal run."""
        if not chains:
            return []
        same = [runs.c[name] for name in SUBJECT]
        size = func.count().over(partition_by=same).label("size")
        with self._read() as connection:
            own = among(connection, runs.c.chain, chains)
            query = select(runs.c.cluster, runs.c.nodes, size)
            each = query.where(own, runs.c.created_at >= since, _REPEATABLE).subquery()
            places = (each.c.cluster, each.c.nodes)
            query = select(*places, func.count()).where(each.c.size > 1).group_by(*places)
            return [(cluster, tuple(nodes), int(count)) for cluster, nodes, count in connection.execute(query)]


def _wanted(since: float) -> list[Any]:
    return [
        runs.c.created_at >= since,
        runs.c.status.in_((*GREEN, *_BAD)),
        runs.c.trigger.not_in(SIDE_RUNS),
        runs.c.framework != "",
    ]


def _groups(since: float) -> Select[Any]:
    columns = [runs.c[name] for name in SUBJECT]
    good = func.sum(case((runs.c.status.in_(GREEN), 1), else_=0))
    bad = func.sum(case((runs.c.status.in_(_BAD), 1), else_=0))
    query = select(*columns, good.label("good"), bad.label("bad"))
    query = query.where(runs.c.created_at >= since, _REPEATABLE)
    return query.group_by(*columns).having(func.count() > 1)
