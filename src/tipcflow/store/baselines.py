"""Baselines: reference values that somebody accepted, with who, when and why."""

from sqlalchemy import func, insert, select

from tipcflow.domain import Frozen
from tipcflow.store.base import StoreBase
from tipcflow.store.schema import baselines


class Baseline(Frozen):
    """One accepted value for (chain, mode, step, leg, metric, environment class).

    Attributes:
        ordinal: counts what was accepted for that key; the largest is in force, the older ones stay visible.
        pinned: whether it stays when newer runs pass.
        run: the run that the value comes from.
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


class BaselinesMixin(StoreBase):
    """Table baselines."""

    def accept_baseline(self, baseline: Baseline) -> int:
        """Put a value in force; returns its ordinal (the one in `baseline` is not used)."""
        key = ("chain", "mode", "step", "leg", "metric", "environment")
        with self._write() as connection:
            same = [baselines.c[name] == getattr(baseline, name) for name in key]
            last = connection.execute(select(func.max(baselines.c.ordinal)).where(*same)).scalar()
            ordinal = 0 if last is None else int(last) + 1
            connection.execute(insert(baselines), baseline.model_dump() | {"ordinal": ordinal})
        return ordinal

    def baselines(self, chain: str, mode: str, environment: str) -> list[Baseline]:
        """The values in force for a chain in a mode and an environment."""
        query = select(baselines).where(
            baselines.c.chain == chain, baselines.c.mode == mode, baselines.c.environment == environment
        )
        key = (baselines.c.step, baselines.c.leg, baselines.c.metric, baselines.c.ordinal)
        with self._read() as connection:
            rows = connection.execute(query.order_by(*key)).mappings()
            in_force = {(row["step"], row["leg"], row["metric"]): row for row in rows}
        return [Baseline.model_validate(dict(row)) for row in in_force.values()]
