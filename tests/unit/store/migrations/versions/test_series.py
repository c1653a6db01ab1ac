"""Measurements as rows (schema 0003) and as series (0004): converted both ways, with data."""

import math
from typing import Any

import pytest
from sqlalchemy import text
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, losses

from tipcflow.domain import Measurement, Phase
from tipcflow.store import Store, migrate
from tipcflow.store.engine import make_engine, reading, writing

pytestmark = pytest.mark.slow

ROWS = "SELECT * FROM measurements ORDER BY run, step, leg, attempt, node, rank, metric, phase, ordinal"
VALUES = [2.0, math.nan, math.inf, -math.inf, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, 1.0, 0.5]


def _rows(url: str) -> list[dict[str, Any]]:
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            return [dict(row) for row in connection.execute(text(ROWS)).mappings()]
    finally:
        engine.dispose()


def _two_runs(store: Store) -> list[Measurement]:
    made: list[Measurement] = []
    for name in ("run-a", "run-b"):
        store.runs.create(a_run(name), a_plan())
        store.attempts.open(name, TRAIN, ["node-a", "node-b"], T0)
        store.attempts.open(name, INFER, ["node-a"], T0)
        made += losses(name, VALUES, unit="nat", source="workerlog.0")
        made += losses(name, [3.0], rank=1, node="node-b")
        other = losses(
            name, [7.5], step=INFER, leg="cpu \u00e9\U0001f600", rank=-1, metric="ms", phase=Phase.INFER
        )[0]
        made += [other, other.model_copy(update={"ordinal": 4, "unit": "s", "source": "x.log", "offset": 2**40})]
    store.measurements.add(made)
    return made


def test_rows_become_series_and_rows_again(empty_url: str) -> None:
    with Store.open(empty_url) as store:
        _two_runs(store)
        runs = ("run-a", "run-b")
        before = [item for run in runs for item in store.measurements.of(run)]
        summaries = _summaries(empty_url)
    seen = _rows(empty_url)
    assert len(seen) == 24
    migrate.downgrade(empty_url, "0003")
    assert _same(_rows(empty_url), seen)
    migrate.upgrade(empty_url)
    assert _same(_rows(empty_url), seen)
    assert _summaries(empty_url) == summaries
    with Store.open(empty_url) as store:
        after = [item for run in runs for item in store.measurements.of(run)]
        assert repr(after) == repr(before)
        assert store.measurements.add(before) == 0


def test_a_database_without_measurements_is_converted(empty_url: str) -> None:
    Store.open(empty_url).close()
    migrate.downgrade(empty_url, "0003")
    migrate.upgrade(empty_url)
    assert _rows(empty_url) == []


def test_rolled_up_series_come_back_as_marked_rows(empty_url: str) -> None:
    with Store.open(empty_url) as store:
        _two_runs(store)
    engine = make_engine(empty_url)
    with writing(engine) as connection:
        connection.execute(text("UPDATE series SET samples = NULL, rolled_up_at = 1.0 WHERE n = 9"))
    engine.dispose()
    migrate.downgrade(empty_url, "0003")
    found = {row["metric"]: row["value"] for row in _rows(empty_url) if row["run"] == "run-a" and row["rank"] == 0}
    assert (found["loss.n"], found["loss.median"], found["loss.lowest"], found["loss.last"]) == (
        9,
        0.75,
        5e-324,
        0.5,
    )
    migrate.upgrade(empty_url)
    with Store.open(empty_url) as store:
        assert [item.value for item in store.measurements.of("run-a", metric="loss.median")] == [0.75]


def _summaries(url: str) -> list[tuple[Any, ...]]:
    engine = make_engine(url)
    columns = "run, metric, n, last_ordinal, finite, mean, median, p10, p90, lowest, highest, last, unit, samples"
    with reading(engine) as connection:
        query = text(f"SELECT {columns} FROM series ORDER BY run, step, leg, rank, node")
        found = [tuple(row) for row in connection.execute(query)]
    engine.dispose()
    return found


def _same(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """Column order differs between table and view."""
    return [sorted(row.items()) for row in some] == [sorted(row.items()) for row in others]
