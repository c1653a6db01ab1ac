"""Curves without measurements are those of measurements."""

import math
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from tests.support.stories import TRAIN, a_plan, a_run, losses

from tipcflow.domain import LossKey, Phase, Series, losses_of
from tipcflow.store import Store
from tipcflow.store.schema import series
from tipcflow.store.series.curves import curves_of
from tipcflow.store.series.measurements import measurements_of

RUN = a_run().id
NAN, INF = math.nan, math.inf


@pytest.fixture
def begun(store: Store) -> Store:
    store.runs.create(a_run(), a_plan())
    store.attempts.open(RUN, TRAIN, ["node-a", "node-b"], 1.0)
    return store


def a_series(values: np.ndarray[Any, np.dtype[np.float64]], rank: int = 0) -> Series:
    """A long series, as runs store it."""
    zeros = np.zeros(len(values), dtype=np.int32)
    return Series(
        run=RUN, step=TRAIN, node="node-a", metric="loss", phase=Phase.TRAIN, rank=rank, values=values,
        epoch=zeros, iteration=zeros, offset=np.arange(len(values)),
    )  # fmt: skip


def both(store: Store, most: int = 0) -> tuple[dict[LossKey, Any], dict[LossKey, Any]]:
    """The curves, and `losses_of` the measurements of the same series."""
    query = select(series).where(series.c.run == RUN)
    with store.database.read() as connection:
        known = losses_of(measurements_of(connection, query, most))
        return curves_of(connection, query, most), known


def same(store: Store, most: int = 0) -> dict[LossKey, Any]:
    found, known = both(store, most)
    assert repr(found) == repr(known)  # nan equals nan in it, and the order counts
    return found


@pytest.mark.parametrize("most", [0, 600, 3_000, 100_000])
def test_long_series_are_thinned_and_short_ones_whole(begun: Store, most: int) -> None:
    source = np.random.default_rng(1)
    values = source.random(5_000)
    values[[7, 3_001]] = [NAN, INF]
    begun.series.add([a_series(values), a_series(source.random(2_100), rank=1)])
    begun.measurements.add(losses(RUN, [3.0, NAN, -INF, 1.0], node="node-b", rank=2))
    found = same(begun, most)
    assert [key.curve.rank for key in found] == [0, 1, 2]
    assert all(len(curve) < 2_000 for curve in found.values()) is (0 < most < 100_000)


def test_total_loss_hides_its_parts(begun: Store) -> None:
    begun.measurements.add([*losses(RUN, [3.0, 2.0]), *losses(RUN, [1.0, 0.5], metric="loss_cls")])
    assert [key.curve.metric for key in same(begun)] == [""]


def test_without_a_total_each_loss_is_a_curve(begun: Store) -> None:
    for name in ("G_loss", "D_loss"):
        begun.measurements.add(losses(RUN, [1.0, 0.5], metric=name))
    assert [key.curve.metric for key in same(begun)] == ["D_loss", "G_loss"]


def test_a_curve_with_gaps_keeps_the_order(begun: Store) -> None:
    rows = losses(RUN, [4.0, 3.0, 2.0, 1.0])
    begun.measurements.add([rows[3], rows[1]])
    assert list(same(begun).values()) == [(3.0, 1.0)]


def test_a_rolled_up_total_has_no_curve_and_still_hides_its_parts(begun: Store) -> None:
    begun.measurements.add([*losses(RUN, [3.0, 2.0]), *losses(RUN, [1.0, 0.5], metric="loss_cls")])
    with begun.database.write() as connection:
        connection.execute(series.update().where(series.c.metric == "loss").values(samples=None, rolled_up_at=9.0))
    assert same(begun) == {}
