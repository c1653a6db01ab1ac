"""Queries over finished runs: how long they took, and which came before a run."""

from collections import defaultdict
from statistics import median

from sqlalchemy import func, select

from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.environment import unlike_before
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import Part
from tipcflow.store.schema import attempts, runs

# Complete runs: the duration of a run that crashed early is not that of the chain.
_WHOLE = (Status.PASS, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.REGRESSION)
# Complete runs, and runs that completed enough to be evaluated as failed.
_JUDGED = (*_WHOLE, Status.FAILED)
# The newest runs of a chain, because frameworks and nodes get faster.
_RECENT = 5


class Finished(Part):
    """Table runs, rows of ended runs."""

    def durations(self, mode: str) -> dict[str, float]:
        """Return chain -> median duration of its newest complete runs in a mode, seconds from the first attempt
        to the end.

        Time spent waiting for slots does not count. Chains without such a run are not included.
        """
        began = func.min(attempts.c.started_at)
        query = (
            select(runs.c.chain, (runs.c.ended_at - began).label("seconds"))
            .join(attempts, attempts.c.run == runs.c.id)
            .where(runs.c.mode == mode, runs.c.status.in_(_WHOLE), runs.c.trigger.not_in(SIDE_RUNS))
            .group_by(runs.c.id, runs.c.chain, runs.c.ended_at, runs.c.created_at)
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        )
        took: dict[str, list[float]] = defaultdict(list)
        with self._read() as connection:
            for chain, seconds in connection.execute(query):
                if len(took[chain]) < _RECENT:
                    took[chain].append(float(seconds))
        return {chain: median(values) for chain, values in took.items()}

    def unlike_before(self, run: Run) -> str:
        """Describe how a run's environment differs from that of the previous run of its chain in that mode; ''
        if it does not differ, or there is no previous run."""
        before = next(iter(self.earlier(run, 1)), None)
        return "" if before is None else unlike_before(run.environment, before.environment, before.id)

    def earlier(self, run: Run, limit: int) -> list[Run]:
        """Return runs of the same chain and mode that began before a run and completed enough to be evaluated,
        newest first."""
        query = (
            select(runs)
            .where(runs.c.chain == run.chain, runs.c.mode == run.mode, runs.c.id != run.id)
            .where(runs.c.created_at < run.created_at, runs.c.status.in_(_JUDGED))
            .where(runs.c.trigger.not_in(SIDE_RUNS))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            return [Run.model_validate(dict(row)) for row in connection.execute(query).mappings()]
