"""Retention of raw samples: samples of old runs are dropped, their stored summaries stay."""

import time
from dataclasses import dataclass

from sqlalchemy import exists, func, select, update

from tipcflow.store.base import Part
from tipcflow.store.schema import runs, series
from tipcflow.store.series.packing import KEPT

DAY_S = 24 * 3600.0
# The longest history of a shipped policy is 52 weekly runs, and users request a year. Chains that run less
# often are compared with runs that were rolled up.
RAW_SAMPLES_DAYS = 365.0


@dataclass(frozen=True)
class RolledUp:
    """Numbers of runs, series and raw samples that were rolled up, or would be."""

    runs: int = 0
    series: int = 0
    samples: int = 0


class Rollup(Part):
    """Table series."""

    def apply(self, *, older_than_s: float = RAW_SAMPLES_DAYS * DAY_S, now: float | None = None) -> RolledUp:
        """Reduce the series of old runs to n, mean, median, p10, p90, smallest, largest and last.

        Short series stay unchanged, because their summary would not be smaller. So do runs without a status. Uses
        one transaction per run, may be interrupted, and may run concurrently. SQLite's file does not shrink; its
        free space is reused.

        Args:
            older_than_s: seconds since the run's end.
            now: seconds since the epoch; None for the clock.
        """
        at = time.time() if now is None else now
        done = RolledUp()
        for run in self._rollable(at - older_than_s):
            with self._write() as connection:
                # Also locks the rows: of two concurrent calls, the second finds none.
                conditions = (series.c.run == run, series.c.samples.is_not(None), series.c.n > KEPT)
                held = select(series.c.n).where(*conditions).with_for_update()
                counts = connection.execute(held).scalars().all()
                if counts:
                    connection.execute(update(series).where(*conditions).values(samples=None, rolled_up_at=at))
                    done = RolledUp(done.runs + 1, done.series + len(counts), done.samples + sum(counts))
        return done

    def preview(self, *, older_than_s: float = RAW_SAMPLES_DAYS * DAY_S, now: float | None = None) -> RolledUp:
        """Return what `apply` would reduce, without changes."""
        at = time.time() if now is None else now
        query = (
            select(func.count(series.c.run.distinct()), func.count(), func.coalesce(func.sum(series.c.n), 0))
            .join(runs, runs.c.id == series.c.run)
            .where(runs.c.ended_at < at - older_than_s, series.c.samples.is_not(None), series.c.n > KEPT)
        )
        with self._read() as connection:
            return RolledUp(*(int(number) for number in connection.execute(query).one()))

    def _rollable(self, before: float) -> list[str]:
        raw = exists().where(series.c.run == runs.c.id, series.c.samples.is_not(None), series.c.n > KEPT)
        query = select(runs.c.id).where(runs.c.ended_at < before, raw).order_by(runs.c.ended_at)
        with self._read() as connection:
            return list(connection.execute(query).scalars())
