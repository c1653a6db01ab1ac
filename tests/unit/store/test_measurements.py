import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, losses

from tipcflow.domain import Measurement, Phase
from tipcflow.store import Store
from tipcflow.store.measurements import BATCH, KEY
from tipcflow.store.schema import measurements
from tipcflow.store.types import storable

RUN = a_run().id


@pytest.fixture
def begun(store: Store) -> Store:
    store.create_run(a_run(), a_plan())
    store.open_attempt(RUN, TRAIN, ["node-a", "node-b"], T0)
    store.open_attempt(RUN, INFER, ["node-a"], T0)
    return store


def _same(one: float, other: float) -> bool:
    """Equal, or both nan; the sign of zero is not kept by SQLite."""
    return one == other or (math.isnan(one) and math.isnan(other))


def test_every_field_has_a_column_and_the_key_is_the_agreed_one() -> None:
    assert set(Measurement.model_fields) == set(measurements.c.keys())
    assert tuple(column.name for column in measurements.primary_key) == KEY
    assert KEY == ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase", "ordinal")


def test_nan_and_inf_are_values(begun: Store) -> None:
    values = [1.5, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2]
    assert begun.add_measurements(losses(RUN, values)) == len(values)
    assert all(map(_same, [item.value for item in begun.measurements(RUN)], values))
    with begun._read() as connection:
        counted = connection.execute(select(func.count(measurements.c.value))).scalar()
    assert counted == len(values) - 1  # SQL aggregates skip nan in both databases


def test_storing_again_adds_nothing_and_changes_nothing(begun: Store) -> None:
    rows = losses(RUN, [3.0, 2.0, 1.0])
    assert begun.add_measurements(rows) == 3
    assert begun.add_measurements(rows) == 0
    assert begun.add_measurements([item.model_copy(update={"value": 9.0}) for item in rows]) == 0
    assert begun.add_measurements([*rows, *losses(RUN, [3.0, 2.0, 1.0, 0.5])]) == 1
    assert [item.value for item in begun.measurements(RUN)] == [3.0, 2.0, 1.0, 0.5]


def test_nothing_to_store(begun: Store) -> None:
    assert begun.add_measurements([]) == 0


def test_each_part_of_the_key_tells_measurements_apart(begun: Store) -> None:
    begun.close_attempt(RUN, TRAIN, 1, a_status(), "", [], T0)
    begun.open_attempt(RUN, TRAIN, ["node-a"], T0)
    one = losses(RUN, [1.0])[0]
    others: dict[str, Any] = {
        "step": INFER,
        "leg": "cpu_onednn_on",
        "attempt": 2,
        "node": "node-b",
        "rank": 1,
        "metric": "ips",
        "phase": Phase.EVAL,
        "ordinal": 1,
    }
    assert begun.add_measurements([one, *(one.model_copy(update={k: v}) for k, v in others.items())]) == 9
    for name, value in others.items():
        if name != "ordinal":
            found = begun.measurements(RUN, **{name: value})
            assert [getattr(item, name) for item in found] == [value], name
    assert len(begun.measurements(RUN, metric=["ips", "loss"])) == 9
    assert begun.measurements("nobody") == []


def a_status() -> Any:
    from tipcflow.domain import Status

    return Status.FAILED


def test_all_or_none(begun: Store) -> None:
    """A batch that fails late leaves no earlier batch behind."""
    good = losses(RUN, [1.0] * (BATCH + 1))
    bad = good[-1].model_copy(update={"rank": -2, "ordinal": 0})
    with pytest.raises(IntegrityError):
        begun.add_measurements([*good, bad])
    assert begun.measurements(RUN) == []
    assert begun.add_measurements(good) == BATCH + 1


@pytest.mark.parametrize(
    "change", [{"attempt": 2}, {"step": "nowhere"}, {"run": "nobody"}, {"node": ""}, {"metric": ""}]
)
def test_what_belongs_to_no_attempt_is_refused(begun: Store, change: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        begun.add_measurements([losses(RUN, [1.0])[0].model_copy(update=change)])


def test_threads_that_store_the_same_rows_store_them_once(begun: Store) -> None:
    rows = losses(RUN, [float(n) for n in range(3000)])
    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(begun.add_measurements, [rows, rows[::-1], rows, rows[::-1]]))
    assert sum(added) == 3000
    assert len(begun.measurements(RUN)) == 3000


def test_processes_that_store_the_same_rows_store_them_once(
    begun: Store, database_url: str, at_once: Callable[..., list[Any]]
) -> None:
    rows = 2 * BATCH + 7
    added = at_once(*[["measure", database_url, RUN, TRAIN, str(rows), order] for order in ("up", "down")])
    assert sum(added) == rows
    found = begun.measurements(RUN)
    assert [item.ordinal for item in found] == list(range(rows))


TEXT = st.text(max_size=12)
FRESH = count()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    metric=st.text(min_size=1, max_size=12),
    source=TEXT,
    unit=TEXT,
    leg=TEXT,
    value=st.floats(),
    offset=st.integers(-1, 2**62),
    rank=st.integers(-1, 1000),
)
def test_any_measurement_comes_back(begun: Store, **fields: Any) -> None:
    item = losses(RUN, [0.0])[0].model_copy(update={**fields, "ordinal": next(FRESH)})
    assert begun.add_measurements([item]) == 1
    assert begun.add_measurements([item]) == 0
    texts = {name: storable(fields[name]) for name in ("metric", "leg", "source", "unit")}
    found = begun.measurements(RUN, rank=item.rank, metric=texts["metric"], leg=texts["leg"])
    (same,) = [one for one in found if one.ordinal == item.ordinal]
    assert _same(same.value, item.value)
    assert same.model_copy(update={"value": 0.0}) == item.model_copy(update={**texts, "value": 0.0})
