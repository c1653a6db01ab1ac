"""Baselines: accepted reference values, with user, time and reason."""

from collections.abc import Sequence

from sqlalchemy import func, insert, select

from tipcflow.domain import Frozen
from tipcflow.store.base import Part
from tipcflow.store.schema import baselines


class Baseline(Frozen):
    """One accepted value for (chain, mode, step, leg, metric, environment class).

    Attributes:
        ordinal: counts the accepted values of that key; the largest is active, older ones stay visible.
        pinned: whether it stays active when newer runs pass.
        run: source of the value.
    """

    chain: str
    mode: str
    step: str
    leg: str = ""
    metric: str
    environment: str
    ordinal: int = 0
    value: float
    unit: str = ""
    pinned: bool = False
    run: str
    who: str
    why: str
    accepted_at: float


class Baselines(Part):
    """Table baselines."""

    def accept_one(self, baseline: Baseline) -> int:
        """Activate a value; return its ordinal (the one in `baseline` is ignored)."""
        return self.accept([baseline])[0]

    def accept(self, decided: Sequence[Baseline]) -> list[int]:
        """Activate values, all or none; return their ordinals (the given ones are ignored)."""
        key = ("chain", "mode", "step", "leg", "metric", "environment")
        ordinals = []
        with self._write() as connection:
            for baseline in decided:
                same = [baselines.c[name] == getattr(baseline, name) for name in key]
                last = connection.execute(select(func.max(baselines.c.ordinal)).where(*same)).scalar()
                ordinals.append(0 if last is None else int(last) + 1)
                connection.execute(insert(baselines), baseline.model_dump() | {"ordinal": ordinals[-1]})
        return ordinals

    def runs(self) -> set[str]:
        """Return the runs whose values were accepted, also those that newer ones have replaced."""
        with self._read() as connection:
            return set(connection.execute(select(baselines.c.run).distinct()).scalars())

    def active(self, chain: str, mode: str, environment: str) -> list[Baseline]:
        """Return the active values of a chain in a mode and an environment."""
        decided = self.decisions(chain, mode, environment)
        in_force = {(baseline.step, baseline.leg, baseline.metric): baseline for baseline in decided}
        return [in_force[key] for key in sorted(in_force)]

    def decisions(self, chain: str, mode: str, environment: str) -> list[Baseline]:
        """Return all decisions for a chain in a mode and an environment, in order.

        A value of nan is a reset: it cancels earlier decisions for that key.
        """
        query = select(baselines).where(
            baselines.c.chain == chain, baselines.c.mode == mode, baselines.c.environment == environment
        )
        order = (
            baselines.c.accepted_at,
            baselines.c.ordinal,
            baselines.c.step,
            baselines.c.leg,
            baselines.c.metric,
        )
        with self._read() as connection:
            rows = connection.execute(query.order_by(*order)).mappings()
            return [Baseline.model_validate(dict(row)) for row in rows]
