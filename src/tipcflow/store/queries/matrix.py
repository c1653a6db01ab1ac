"""Cells of the matrix: newest framework builds, and the runs and steps of chains in columns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from tipcflow.domain import Status
from tipcflow.store.base import Part
from tipcflow.store.run.line_states import is_state
from tipcflow.store.schema import runs, steps

# Databases limit the number of values in a query.
_AT_ONCE = 500


@dataclass(frozen=True)
class BuildRun:
    """A run of a chain with a framework build, without its details."""

    run: str
    chain: str
    mode: str
    environment: str
    framework: str
    status: Status
    created_at: float


@dataclass(frozen=True)
class VariantStep:
    """A step of a run that belongs to a variant."""

    run: str
    variant: str
    status: Status


class MatrixQueries(Part):
    """Read-only queries; their cost depends on the number of builds and of the requested chains."""

    def builds(self, limit: int) -> list[str]:
        """Return the framework builds whose newest runs are the newest, newest first."""
        first = select(func.min(runs.c.framework).label("framework")).where(runs.c.framework > "")
        builds = first.cte("builds", recursive=True)
        other = runs.alias("other")
        following = select(func.min(other.c.framework)).where(other.c.framework > builds.c.framework)
        builds = builds.union_all(select(following.scalar_subquery()).where(builds.c.framework.is_not(None)))
        newest = (
            select(func.max(runs.c.created_at)).where(runs.c.framework == builds.c.framework).scalar_subquery()
        )
        query = select(builds.c.framework, newest).where(builds.c.framework.is_not(None))
        query = query.order_by(newest.desc(), builds.c.framework)
        with self._read() as connection:
            return [name for name, _ in connection.execute(query.limit(limit))]

    def of_builds(self, chains: Collection[str], builds: Sequence[str]) -> list[BuildRun]:
        """Return the runs of chains with framework builds that may be the state of their line, newest first."""
        columns = (
            runs.c.chain,
            runs.c.mode,
            runs.c.environment,
            runs.c.framework,
            runs.c.status,
            runs.c.created_at,
        )
        # The index of framework builds would lead SQLite to all runs of these builds; `concat` keeps it from that.
        names = sorted(chains)
        build_runs: list[BuildRun] = []
        with self._read() as connection:
            for start in range(0, len(names), _AT_ONCE):
                query = select(runs.c.id, *columns).where(
                    runs.c.chain.in_(names[start : start + _AT_ONCE]),
                    runs.c.framework.concat("").in_(builds),
                    *is_state(runs),
                )
                build_runs += [
                    BuildRun(run, chain, mode, environment, framework, Status(status), at)
                    for run, chain, mode, environment, framework, status, at in connection.execute(query)
                ]
        return sorted(build_runs, key=lambda run: (-run.created_at, run.run))

    def variants(self, run_ids: Collection[str]) -> list[VariantStep]:
        """Return the ended steps of runs that belong to a variant, by variant and step."""
        ids = sorted(run_ids)
        variant_steps: list[VariantStep] = []
        columns = (steps.c.run, steps.c.variant, steps.c.status)
        with self._read() as connection:
            for start in range(0, len(ids), _AT_ONCE):
                query = select(*columns).where(
                    steps.c.run.in_(ids[start : start + _AT_ONCE]),
                    steps.c.variant != "",
                    steps.c.status.is_not(None),
                )
                rows = connection.execute(query.order_by(steps.c.variant, steps.c.run, steps.c.step))
                variant_steps += [VariantStep(run, variant, Status(status)) for run, variant, status in rows]
        return variant_steps
