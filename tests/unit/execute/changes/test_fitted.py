"""The limits of a repository's budget, and the history by which chains are fitted into it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_plan, a_record, a_run, record_run

from tipcflow.config.repository import Budget
from tipcflow.domain import Status
from tipcflow.execute.changes.fitted import good_runs, predictions, repository_limits, samples_of
from tipcflow.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        yield store


def test_limits_are_in_seconds() -> None:
    budget = Budget(minutes_per_chain=2, minutes=30, nodes=3, unknown_minutes=4, reserve_minutes=1, drop=("*",))
    limits = repository_limits(budget)
    assert (limits.chain_s, limits.total_s, limits.reserve_s, limits.unknown_s) == (120, 1800, 60, 240)
    assert (limits.nodes, limits.drop) == (3, ("*",))


def test_history_has_only_accepted_runs_of_the_same_mode_and_cluster(store: Store) -> None:
    plan = a_plan()
    for name, status, fields in (
        ("good", Status.PASS, {}),
        ("better", Status.IMPROVEMENT, {}),
        ("failed", Status.FAILED, {}),
        ("mode", Status.PASS, {"mode": "whole_infer"}),
        ("cluster", Status.PASS, {"cluster": "elsewhere"}),
    ):
        base = {"chain": plan.chain, "mode": plan.mode, "cluster": plan.cluster or "local"}
        run = record_run(store, a_run(name, status=None, **{**base, **fields}))
        store.runs.finish(run.id, status, "", run.created_at + 60)
    found = {run.id for run in good_runs(store, plan)}
    assert {"good", "better"} <= found
    assert not {"failed", "mode"} & found
    assert ("cluster" in found) == (plan.cluster == "")


def test_time_of_a_step_excludes_that_of_its_legs(store: Store) -> None:
    plan = a_plan()
    run = record_run(store, a_run("one", status=None, chain=plan.chain, mode=plan.mode))
    step = next(step for step in plan.steps if step.legs)
    leg = step.legs[0]
    number = store.attempts.open(run.id, step.id, step.nodes, 1000.0)
    record = a_record(
        run.id, step.id, step.nodes[0], leg=leg.id, attempt=number, started_at=1000.0, ended_at=1030.0
    )
    store.steps.set_leg(run.id, step.id, leg.id, number, Status.PASS, "", record)
    store.attempts.close(run.id, step.id, number, Status.PASS, "", (), 1040.0)
    store.runs.finish(run.id, Status.PASS, "", 2000.0)
    samples = samples_of(store, plan)
    assert samples.legs[step.id, leg.id] == [30.0]
    others = sum(record.duration_s for record in store.steps.leg_records(run.id) if record.leg != leg.id)
    assert max(samples.steps[step.id]) == 40.0 - 30.0 - others


def test_chain_without_runs_has_no_predictions(store: Store) -> None:
    assert predictions(store, "toy/toy/none") == ()
