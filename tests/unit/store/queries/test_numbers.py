"""Metric values of several runs, without their samples."""

import math

import pytest
from sqlalchemy import event
from tests.support.stories import T0, TRAIN, a_run, losses, record_run

from tipcflow.domain import Measurement, MetricKey, Phase, Run
from tipcflow.domain.run_documents import NumbersDocument
from tipcflow.store import Store

SPEED, TOP1, RSS = (MetricKey(TRAIN, "", name) for name in ("batch_cost", "eval.top1", "peak_rss.rank1"))


def a_training(store: Store, run_id: str, *, slow: float = 1.0) -> Run:
    """The first third of the iterations is slow: the warm-up."""
    run = record_run(store, a_run(run_id, created_at=T0 + len(run_id)))
    speeds = [slow * (2.0 if at < 30 else 1.0) for at in range(90)]
    for rank in (0, 1):
        store.measurements.add(losses(run.id, speeds, metric="batch_cost", rank=rank))
        known = {"run": run.id, "step": TRAIN, "node": "node-a", "rank": rank}
        store.measurements.add(
            [
                *(
                    Measurement(**known, metric="top1", phase=Phase.EVAL, value=value, ordinal=at)
                    for at, value in enumerate((0.1, 0.7 + rank))
                ),
                Measurement(**known, metric="peak_rss", phase=Phase.RESOURCE, value=5.0 + rank),
            ]
        )
    return run


def test_cached_values_equal_the_values_of_checks(store: Store) -> None:
    run = a_training(store, "run-1")
    exact = store.history.past_run(run.id).medians
    (numbers,) = store.numbers.of([run.id]).values()
    assert numbers.exact
    assert numbers.values == exact
    assert exact[SPEED] == 1.0


def test_metric_values_without_a_document_come_from_summaries(store: Store) -> None:
    run = a_training(store, "run-1", slow=3.0)
    (numbers,) = store.numbers.of([run.id]).values()
    assert not numbers.exact
    assert (numbers.values[TOP1], numbers.values[RSS]) == (0.7, 6.0)
    assert numbers.values[SPEED] == 3.0
    assert store.documents.get(run.id, NumbersDocument) is None, "reading does not write"


def test_a_document_of_fewer_samples_is_not_used(store: Store) -> None:
    run = a_training(store, "run-1")
    store.history.past_run(run.id)
    store.measurements.add(losses(run.id, [9.0] * 300, metric="batch_cost", rank=2))
    assert not store.numbers.of([run.id])[run.id].exact


def test_judgement_caches_metric_values(store: Store) -> None:
    run = a_training(store, "run-1")
    store.history.cache_numbers(run.id, store.history.facts(run.id).measurements)
    assert store.numbers.of([run.id])[run.id].exact
    assert store.numbers.of([run.id])[run.id].values == store.history.past_run(run.id).medians


def test_runs_without_values(store: Store) -> None:
    store.runs.create(a_run("run-1"))
    run = record_run(store, a_run("run-2"))
    store.measurements.add(losses(run.id, [math.nan], metric="batch_cost"))
    numbers = store.numbers.of(["run-1", "run-2", "nothing"])
    assert numbers["run-1"].values == numbers["nothing"].values == {}
    assert SPEED not in numbers["run-2"].values


def test_no_query_reads_samples(store: Store) -> None:
    a_training(store, "run-1")
    store.history.past_run(a_training(store, "run-22").id)
    statements: list[str] = []
    event.listen(
        store.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]), named=False
    )
    store.numbers.past(["run-1", "run-22"])
    assert len([text for text in statements if "SELECT" in text]) == 4
    assert not any("samples" in text for text in statements)


@pytest.mark.parametrize(("limit", "ids"), [(2, ["run-22", "run-333"]), (9, ["run-1", "run-22", "run-333"])])
def test_recent_runs_of_a_group(store: Store, limit: int, ids: list[str]) -> None:
    for name, fields in (
        ("run-1", {}),
        ("run-22", {}),
        ("run-333", {}),
        ("run-other", {"mode": "whole_infer"}),
        ("run-confirm", {"trigger": "confirm"}),
    ):
        store.runs.create(a_run(name, created_at=T0 + len(name), **fields))
    known = {"mode": "lite_train_lite_infer", "environment": "", "compat": "spec", "side": ("confirm",)}
    chain = store.runs.get("run-1").chain
    assert [run.id for run in store.numbers.recent(chain, limit=limit, **known)] == ids
    assert store.numbers.groups(chain, side=("confirm",)) == [
        ("whole_infer", "", "spec", 1),
        ("lite_train_lite_infer", "", "spec", 3),
    ]


def test_confirm_values_stay_when_numbers_are_computed_again(store: Store) -> None:
    """They are read with the run's values, and only finite ones are kept."""
    run = a_training(store, "run-1")
    measured = store.history.facts(run.id).measurements
    store.history.cache_numbers(run.id, measured, {SPEED: (1.5,), TOP1: (float("nan"),)})
    store.measurements.add(losses(run.id, [9.0] * 300, metric="batch_cost", rank=2))
    assert store.history.past_run(run.id).confirms == {SPEED: (1.5,)}
    assert store.numbers.past([run.id])[run.id].confirms == {SPEED: (1.5,)}
