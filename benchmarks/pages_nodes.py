"""Baselines of two speeds in the runs of the last quarter, for the history of nodes.

Probes are left out: they need steps and attempts of all these runs.
"""

import random
import time
from collections.abc import Iterator

from sqlalchemy import insert, select
from tests.support.stories import INFER, TRAIN

from tipcflow.domain import CheckResult, Status
from tipcflow.execute.overview.node_history import HISTORY_DAYS, refresh_node_histories
from tipcflow.store import Store
from tipcflow.store import schema as tables
from tipcflow.store.engine import make_engine, writing
from tipcflow.store.results.checks import check_rows

DAY_S = 86_400.0
_AT_ONCE = 2000
_NOISE = 0.01


def node_speeds(url: str) -> None:
    """Store the baselines."""
    noise, engine = random.Random(7), make_engine(url)
    ended = (tables.runs.c.created_at > time.time() - HISTORY_DAYS * DAY_S, tables.runs.c.ended_at.is_not(None))
    with writing(engine) as connection:
        runs = connection.execute(select(tables.runs.c.id).where(*ended)).scalars().all()
        for start in range(0, len(runs), _AT_ONCE):
            batch = runs[start : start + _AT_ONCE]
            rows = [row for run in batch for row in check_rows(run, list(_baselines(noise)))]
            # Some runs have checks already.
            after = [{**row, "ordinal": row["ordinal"] + 1000, "position": row["position"] + 1000} for row in rows]
            connection.execute(insert(tables.check_results), after)
    engine.dispose()


def maintain(store: Store) -> float:
    """Find the history of nodes, as the DAG `maintenance` does. Returns the seconds that it took."""
    begun = time.perf_counter()
    refresh_node_histories(store)
    return time.perf_counter() - begun


def _baselines(noise: random.Random) -> Iterator[CheckResult]:
    for step, metric in ((TRAIN, "batch_cost"), (INFER, "inference_time")):
        values = {"value": 1.0, "baseline": 1.0, "ratio": noise.gauss(1.0, _NOISE)}
        yield CheckResult(
            check=f"speed.{metric}",
            status=Status.PASS,
            reason="as before",
            step=step,
            metric=metric,
            values=values,
        )
