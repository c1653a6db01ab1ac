"""Many runs at once: which there are, which have no status yet, how long those took that have one."""

from collections import defaultdict
from collections.abc import Collection
from statistics import median

from sqlalchemy import func, select

from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.environment import unlike_before
from tipcflow.store.base import StoreBase
from tipcflow.store.schema import attempts, runs

# Runs that did all that was planned: one that crashed early says nothing about how long the chain takes.
_WHOLE = (Status.PASS, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.REGRESSION)
# Those, and runs that did enough to be told that they are wrong.
_JUDGED = (*_WHOLE, Status.FAILED)
# The newest ones of a chain: frameworks and nodes get faster.
_RECENT = 5
# Databases limit how many values a query may name.
_AT_ONCE = 500


class FinishedMixin(StoreBase):
    """Table runs, many at once."""

    def known_runs(self, run_ids: Collection[str]) -> dict[str, Run]:
        """The runs of these ids that there are."""
        wanted, found = sorted(run_ids), {}
        with self._read() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                query = select(runs).where(runs.c.id.in_(wanted[start : start + _AT_ONCE]))
                for row in connection.execute(query).mappings():
                    found[row["id"]] = Run.model_validate(dict(row))
        return found

    def unfinished_runs(self) -> list[Run]:
        """All runs that have no status, oldest first."""
        query = select(runs).where(runs.c.status.is_(None)).order_by(runs.c.created_at, runs.c.id)
        with self._read() as connection:
            return [Run.model_validate(dict(row)) for row in connection.execute(query).mappings()]

    def durations(self, mode: str) -> dict[str, float]:
        """Chain -> the median of its newest whole runs in a mode, seconds from the first attempt to the end.

        Waiting for slots does not count. Chains without such a run are not in it.
        """
        began = func.min(attempts.c.started_at)
        query = (
            select(runs.c.chain, (runs.c.ended_at - began).label("seconds"))
            .join(attempts, attempts.c.run == runs.c.id)
            .where(runs.c.mode == mode, runs.c.status.in_(_WHOLE))
            .group_by(runs.c.id, runs.c.chain, runs.c.ended_at, runs.c.created_at)
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        )
        took: dict[str, list[float]] = defaultdict(list)
        with self._read() as connection:
            for chain, seconds in connection.execute(query):
                if len(took[chain]) < _RECENT:
                    took[chain].append(float(seconds))
        return {chain: median(several) for chain, several in took.items()}

    def unlike_before(self, run: Run) -> str:
        """In what a run's environment differs from that of its chain's run before in that mode, in words; '' when
        it does not, or there is none."""
        before = next(iter(self.earlier_runs(run, 1)), None)
        return "" if before is None else unlike_before(run.environment, before.environment, before.id)

    def earlier_runs(self, run: Run, limit: int) -> list[Run]:
        """Runs of the same chain and mode that began before a run and say something of it, newest first."""
        query = (
            select(runs)
            .where(runs.c.chain == run.chain, runs.c.mode == run.mode, runs.c.id != run.id)
            .where(runs.c.created_at < run.created_at, runs.c.status.in_(_JUDGED))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            return [Run.model_validate(dict(row)) for row in connection.execute(query).mappings()]
