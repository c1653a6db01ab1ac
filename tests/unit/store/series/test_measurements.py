import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, losses

from tipcflow.domain import Measurement, Phase
from tipcflow.store import Store
from tipcflow.store.schema import series
from tipcflow.store.series.measurements import BATCH, KEY
from tipcflow.store.types import storable

RUN = a_run().id


@pytest.fixture
def begun(store: Store) -> Store:
    store.runs.create(a_run(), a_plan())
    store.attempts.open(RUN, TRAIN, ["node-a", "node-b"], T0)
    store.attempts.open(RUN, INFER, ["node-a"], T0)
    return store


def _same(one: float, other: float) -> bool:
    """Equal, or both nan; the sign of zero is not kept by SQLite."""
    return one == other or (math.isnan(one) and math.isnan(other))


def test_the_key_is_the_agreed_one() -> None:
    assert tuple(column.name for column in series.primary_key) == KEY
    assert KEY == ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase")
    assert (*KEY, "ordinal") == tuple(Measurement.model_fields)[:9]


def test_nan_and_inf_are_values(begun: Store) -> None:
    values = [1.5, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2]
    assert begun.measurements.add(losses(RUN, values)) == len(values)
    assert [repr(item.value) for item in begun.measurements.of(RUN)] == [repr(value) for value in values]


def test_users_with_a_database_client_see_every_sample(begun: Store) -> None:
    values = [1.5, math.nan, math.inf, -math.inf, 0.25]
    other = losses(RUN, [7.0], metric="ips")[0]
    others = [
        other,
        other.model_copy(update={"ordinal": 3, "unit": "images/s", "source": "b.log", "offset": 2**40}),
    ]
    begun.measurements.add([*losses(RUN, values, unit="nat", source="a.log"), *others])
    query = "SELECT * FROM measurements WHERE run = :run ORDER BY metric DESC, ordinal"
    with begun.database.read() as connection:
        rows = [dict(row) for row in connection.execute(text(query), {"run": RUN}).mappings()]
    assert set(rows[0]) == set(Measurement.model_fields) - {"stands_for"}
    assert [row["value"] for row in rows] == [1.5, None, math.inf, -math.inf, 0.25, 7.0, 7.0]
    assert [row["ordinal"] for row in rows] == [0, 1, 2, 3, 4, 0, 3]
    assert [row["unit"] for row in rows] == ["nat"] * 5 + ["", "images/s"]
    assert (rows[-1]["source"], rows[-1]["offset"], rows[0]["offset"]) == ("b.log", 2**40, -1)


def test_storing_again_adds_nothing_and_changes_nothing(begun: Store) -> None:
    rows = losses(RUN, [3.0, 2.0, 1.0])
    assert begun.measurements.add(rows) == 3
    assert begun.measurements.add(rows) == 0
    assert begun.measurements.add([item.model_copy(update={"value": 9.0}) for item in rows]) == 0
    assert begun.measurements.add([*rows, *losses(RUN, [3.0, 2.0, 1.0, 0.5])]) == 1
    assert [item.value for item in begun.measurements.of(RUN)] == [3.0, 2.0, 1.0, 0.5]


def test_an_empty_list_stores_no_measurement(begun: Store) -> None:
    assert begun.measurements.add([]) == 0


def test_every_part_of_the_key_distinguishes_measurements(begun: Store) -> None:
    begun.attempts.close(RUN, TRAIN, 1, a_status(), "", [], T0)
    begun.attempts.open(RUN, TRAIN, ["node-a"], T0)
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
    assert begun.measurements.add([one, *(one.model_copy(update={k: v}) for k, v in others.items())]) == 9
    for name, value in others.items():
        if name != "ordinal":
            found = begun.measurements.of(RUN, **{name: value})
            assert [getattr(item, name) for item in found] == [value], name
    assert len(begun.measurements.of(RUN, metric=["ips", "loss"])) == 9
    assert begun.measurements.of("unknown") == []


def a_status() -> Any:
    from tipcflow.domain import Status

    return Status.FAILED


def test_all_measurements_are_stored_or_none(begun: Store) -> None:
    """A series that is refused late leaves none of an earlier statement behind."""
    good = [losses(RUN, [1.0], metric=f"m{number}")[0] for number in range(BATCH + 1)]
    bad = good[-1].model_copy(update={"rank": -2})
    with pytest.raises(IntegrityError):
        begun.measurements.add([*good, bad])
    assert begun.measurements.of(RUN) == []
    assert begun.measurements.add(good) == BATCH + 1


def test_an_ordinal_that_cannot_be_is_refused(begun: Store) -> None:
    with pytest.raises(ValueError, match="counts from 0"):
        begun.measurements.add([losses(RUN, [1.0])[0].model_copy(update={"ordinal": -1})])


def test_late_samples_are_inserted_in_order(begun: Store) -> None:
    """Parts of a series, in any order, with gaps between."""
    whole = losses(RUN, [float(number) for number in range(9)], source="a", unit="s")
    for chosen in ([7, 3], [3, 4, 0], [8, 7], list(range(9))):
        begun.measurements.add([whole[number] for number in chosen])
    assert begun.measurements.of(RUN) == whole
    with begun.database.read() as connection:
        row = connection.execute(select(series)).mappings().one()
    assert (row["n"], row["last_ordinal"], row["finite"], row["mean"], row["median"]) == (9, 8, 9, 4.0, 4.0)
    assert (row["lowest"], row["highest"], row["last"]) == (0.0, 8.0, 8.0)
    assert (row["p10"], row["p90"]) == pytest.approx((0.8, 7.2))


@pytest.mark.parametrize(
    "change", [{"attempt": 2}, {"step": "nowhere"}, {"run": "unknown"}, {"node": ""}, {"metric": ""}]
)
def test_measurements_without_an_attempt_are_refused(begun: Store, change: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        begun.measurements.add([losses(RUN, [1.0])[0].model_copy(update=change)])


def test_rows_stored_by_several_threads_are_stored_once(begun: Store) -> None:
    rows = losses(RUN, [float(n) for n in range(3000)])
    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(begun.measurements.add, [rows, rows[::-1], rows, rows[::-1]]))
    assert sum(added) == 3000
    assert len(begun.measurements.of(RUN)) == 3000


@pytest.mark.process
def test_rows_stored_by_several_processes_are_stored_once(
    begun: Store, database_url: str, at_once: Callable[..., list[Any]]
) -> None:
    rows = 2 * BATCH + 7
    added = at_once(*[["measure", database_url, RUN, TRAIN, str(rows), order] for order in ("up", "down")])
    assert sum(added) == rows
    found = begun.measurements.of(RUN)
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
    assert begun.measurements.add([item]) == 1
    assert begun.measurements.add([item]) == 0
    texts = {name: storable(fields[name]) for name in ("metric", "leg", "source", "unit")}
    found = begun.measurements.of(RUN, rank=item.rank, metric=texts["metric"], leg=texts["leg"])
    (same,) = [one for one in found if one.ordinal == item.ordinal]
    assert _same(same.value, item.value)
    assert same.model_copy(update={"value": 0.0}) == item.model_copy(update={**texts, "value": 0.0})
