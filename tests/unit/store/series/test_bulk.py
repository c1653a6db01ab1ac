"""Series that come as columns are stored as the same numbers that come one by one."""

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.support.stories import T0, TRAIN, a_plan, a_run

from tipcflow.domain import Measurement, Phase, Series, Status, losses_of, numbers_of
from tipcflow.store import Store
from tipcflow.store.series.columns import LONG, columns_of, pack_series
from tipcflow.store.series.packing import packed_of, summary, value_of, values_of

pytestmark = pytest.mark.slow

RUN = a_run().id
KEY: dict[str, Any] = {
    "run": RUN,
    "step": TRAIN,
    "node": "node-a",
    "metric": "loss",
    "phase": Phase.TRAIN,
    "rank": 0,
}


def a_series(values: Sequence[float], **more: Any) -> Series:
    number = np.arange(len(values))
    return Series(
        **{**KEY, **more},
        values=np.array(values, dtype=np.float64),
        epoch=(number // 500).astype(np.int32),
        iteration=(number % 500 * 10).astype(np.int32),
        offset=np.cumsum(100 + number % 7),
    )


def one_by_one(one: Series) -> list[Measurement]:
    key = {name: getattr(one, name) for name in (*KEY, "attempt", "leg", "source")}
    units = dict(one.units)
    unit, found = one.unit, []
    for at, value in enumerate(one.values.tolist()):
        unit = units.get(at, unit)
        where = {name: int(getattr(one, name)[at]) for name in ("epoch", "iteration", "offset")}
        found.append(Measurement(**key, **where, ordinal=at, value=value, unit=unit))
    return found


def exactly(items: list[Measurement]) -> list[object]:
    return [(one.model_dump(exclude={"value"}), struct.pack("<d", one.value)) for one in items]


@pytest.fixture
def begun(store: Store) -> Store:
    store.runs.create(a_run(), a_plan())
    for number in (1, 2):
        store.attempts.open(RUN, TRAIN, ["node-a"], T0)
        store.attempts.close(RUN, TRAIN, number, Status.FAILED, "", [], T0 + 1)
    return store


SHORT = [0.5, -0.0, math.inf, -math.inf, math.nan, 1e-300, 1.0]


@pytest.mark.parametrize("length", [1, 7, LONG, LONG + 1, 3 * LONG])
@pytest.mark.parametrize("kind", ["decimal", "any", "broken"])
def test_series_in_bulk_and_single_series_are_equal(begun: Store, length: int, kind: str) -> None:
    values = [round(7 / (1 + at), 5) for at in range(length)]
    if kind == "any":
        values = [math.sin(at) * 10.0 ** (at % 600 - 300) for at in range(length)]
    if kind == "broken":
        values[: len(SHORT)] = SHORT[:length]
    bulk, single = (
        a_series(values, source="a.log", unit="nat"),
        a_series(values, attempt=2, source="a.log", unit="nat"),
    )
    assert begun.series.add([bulk]) == length
    assert begun.measurements.add(one_by_one(single)) == length
    first, second = (begun.measurements.of(RUN, attempt=attempt) for attempt in (1, 2))
    assert exactly(first) == exactly(one_by_one(bulk))
    assert exactly([one.model_copy(update={"attempt": 1}) for one in second]) == exactly(first)


def test_a_unit_that_changes_stays_with_its_samples(begun: Store) -> None:
    for rank, length in enumerate((5, 2 * LONG)):
        one = a_series([1.0] * length, unit="s", units=((2, "ms"), (4, "s")), rank=rank, source="x")
        begun.series.add([one])
        assert [item.unit for item in begun.measurements.of(RUN, rank=rank)][:5] == ["s", "s", "ms", "ms", "s"]


def test_values_are_stored_once(begun: Store) -> None:
    values = [float(at) for at in range(2 * LONG)]
    assert begun.series.add([a_series(values[:LONG])]) == LONG
    assert begun.series.add([a_series(values[:LONG])]) == 0
    assert begun.series.add([a_series(values[: LONG - 1])]) == 0, "less than is there"
    assert begun.series.add([a_series(values)]) == LONG, "the rest of a log that had not arrived whole"
    assert begun.measurements.add(one_by_one(a_series(values))) == 0
    assert [one.value for one in begun.measurements.of(RUN)] == values
    assert begun.series.add([a_series([*values, 0.25])]) == 1, "a packed series grows too"
    assert begun.measurements.of(RUN)[-1].value == 0.25


def test_all_series_are_stored_or_none(begun: Store) -> None:
    def broken() -> Any:
        yield a_series([1.0, 2.0])
        raise RuntimeError("the log cannot be read")

    with pytest.raises(RuntimeError):
        begun.series.add(broken())
    assert begun.measurements.of(RUN) == []


def test_sql_reads_a_packed_series(begun: Store) -> None:
    """The view has one row of it: the last sample."""
    begun.series.add(
        [a_series([float(at) for at in range(LONG + 5)], unit="nat", source="w"), a_series([1.0], rank=1)]
    )
    query = "SELECT ordinal, value, unit FROM measurements WHERE run = :run ORDER BY rank, ordinal"
    with begun.database.read() as connection:
        rows = [tuple(row) for row in connection.execute(text(query), {"run": RUN})]
    assert rows == [(LONG + 4, LONG + 4.0, "nat"), (0, 1.0, "")]


numbers = st.one_of(
    st.floats(), st.integers(-(10**7), 10**7).map(lambda n: n / 1e5), st.sampled_from([0.0, -0.0, 1e400, 2.0**53])
)


@given(st.lists(numbers, min_size=1, max_size=40), st.integers(LONG, LONG + 30))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_number_comes_back(values: list[float], length: int) -> None:
    whole = (values * length)[: length + 1]
    one = a_series(whole)
    packed, found = pack_series(one)
    assert [struct.pack("<d", value) for value in values_of(packed)] == [
        struct.pack("<d", value) for value in whole
    ] or any(math.isnan(value) for value in whole)
    rows = packed_of(packed)
    assert [repr(value_of(row[1])) for row in rows] == [repr(value) for value in whole]
    assert [row[4] for row in rows] == one.offset.tolist()
    expected = summary(rows)
    for name, ours, theirs in zip(
        ("n", "last", "finite", *["mean", "median", "p10", "p90", "low", "high", "end"]),
        found,
        expected,
        strict=True,
    ):
        if isinstance(theirs, float) and math.isfinite(theirs) and isinstance(ours, float):
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-300) or name == "mean", name
        elif name != "mean":
            assert repr(ours) == repr(theirs), name


def test_a_long_series_takes_little_room() -> None:
    rng = np.random.default_rng(1)
    packed, _ = pack_series(a_series(np.round(rng.random(100_000), 5).tolist()))
    assert len(packed) < 100_000 * 8
    assert len(columns_of(json.loads(packed)[0]).values) == 100_000


def test_losses_are_sampled_equally_for_every_reader(begun: Store) -> None:
    """However many other numbers there are: a curve that is cut another way would differ from itself."""
    source = np.random.default_rng(1)
    for metric in ("loss", "ips", "lr", "top1", "batch_cost", "reader_cost", "top5"):
        begun.series.add([a_series(source.random(40_000), metric=metric, attempt=2)])
    begun.runs.finish(RUN, Status.PASS, "", T0 + 9)
    facts = begun.history.facts(RUN)
    curves = losses_of(facts.measurements)
    assert curves == begun.history.past_run(RUN).losses
    assert [len(curve) for curve in curves.values()] == [40_000], "they are few enough to be read whole"
    assert 50_000 < len(facts.measurements) < 150_000
    assert begun.history.past_run(RUN).medians == numbers_of(facts.measurements)
