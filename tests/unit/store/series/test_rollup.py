import math
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, losses, record_run

from tipcflow.domain import CurveKey, LossKey, Measurement, MetricKey, Phase, losses_of, medians_of
from tipcflow.domain.run_documents import NumbersDocument
from tipcflow.store import Store
from tipcflow.store.series.rollup import RolledUp

YEAR = 365 * 86_400.0
LONG = [8.0, math.nan, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@pytest.fixture
def old(store: Store) -> Store:
    """Two runs that ended long ago and one that continues; each with a long series and a short one."""
    for number in range(3):
        run = record_run(store, a_run(f"run-{number}", created_at=T0 + number))
    store.runs.reopen("run-2")
    for number in range(3):
        run = store.runs.get(f"run-{number}")
        store.measurements.add(losses(run.id, LONG, node="node-b", unit="nat"))
    return store


def test_samples_are_replaced_by_a_summary(old: Store) -> None:
    expected = RolledUp(runs=2, series=2, samples=18)
    assert old.rollup.preview(now=T0 + YEAR + 60) == expected
    assert old.rollup.apply(now=T0 + YEAR + 60) == expected
    assert old.rollup.apply(now=T0 + YEAR + 60) == RolledUp()
    (one,) = old.measurements.of("run-0", node="node-b")
    assert (one.value, one.stands_for, one.unit) == (4.5, 9, "nat")
    assert [item.value for item in old.measurements.of("run-0", node="node-a")] == [2.0, 1.0, 0.5]
    assert len(old.measurements.of("run-2")) == 3 + 9, "a run that continues keeps everything"
    row = (
        old.frames.history(a_run().chain, "train", "loss", each=True)
        .query("run == 'run-0' and node == 'node-b'")
        .iloc[0]
    )
    assert (row["n"], row["mean"], row["median"], row["lowest"], row["highest"]) == (9, 4.5, 4.5, 1.0, 8.0)


def test_younger_runs_keep_their_samples(old: Store) -> None:
    assert old.rollup.apply(now=T0 + YEAR) == RolledUp()
    assert old.rollup.apply(older_than_s=10.0, now=T0 + 60).runs == 2


def test_an_old_run_can_still_be_compared_with(old: Store) -> None:
    before = old.history.past_run("run-1")
    old.rollup.apply(now=T0 + YEAR + 60)
    after = old.history.past_run("run-1")
    assert after.medians == before.medians, "the numbers of an ended run are kept"
    old.documents.remove("run-1", NumbersDocument)
    after = old.history.past_run("run-1")
    assert set(after.medians) == set(before.medians)
    assert after.medians[MetricKey(TRAIN, "", "loss")] == 4.5, "the median counts as often as it has samples"
    assert set(before.losses) - set(after.losses) == {LossKey(TRAIN, CurveKey("node-b", 0))}, "no order is made up"
    facts = old.history.facts("run-1")
    assert medians_of(facts.measurements) == after.medians
    assert losses_of(facts.measurements) == after.losses


def evaluations(run: str, values: list[float], **fields: Any) -> list[Measurement]:
    known: dict[str, Any] = {"step": TRAIN, "node": "node-a", "rank": 0, "metric": "top1", "phase": Phase.EVAL}
    return [Measurement(run=run, ordinal=at, value=value, **(known | fields)) for at, value in enumerate(values)]


@pytest.mark.parametrize("last", [0.75, math.nan, math.inf])
def test_last_evaluation_survives_a_rollup(old: Store, last: float) -> None:
    curve = [0.1, 0.3, 0.45, 0.55, 0.6, 0.63, 0.66, 0.68, 0.7, 0.72, 0.735, last]
    old.measurements.add(evaluations("run-1", curve))
    old.measurements.add(evaluations("run-1", [0.5, 0.74], node="node-b"))
    expected = (0.75 + 0.74) / 2 if last == 0.75 else 0.74
    assert old.history.past_run("run-1").medians[MetricKey(TRAIN, "", "eval.top1")] == expected
    old.rollup.apply(now=T0 + YEAR + 60)
    assert old.history.past_run("run-1").medians[MetricKey(TRAIN, "", "eval.top1")] == expected
    kept = old.measurements.of("run-1", metric="top1", node="node-a")
    assert [(one.ordinal, one.stands_for) for one in kept] == [(0, 11), (11, 1)]
    assert kept[-1].value == pytest.approx(last, nan_ok=True)


def test_storing_rolled_up_rows_again_adds_nothing(old: Store) -> None:
    old.rollup.apply(now=T0 + YEAR + 60)
    assert old.measurements.add(losses("run-0", LONG, node="node-b")) == 0
    with pytest.raises(ValueError, match=r"loss of run run-0 were rolled up"):
        old.measurements.add(losses("run-0", [*LONG, 1.0], node="node-b"))
