"""Closing an attempt that another task closes at the same moment."""

from types import SimpleNamespace
from typing import Any

from tests.support.stories import T0, TRAIN, a_plan, a_run, open_store

from tipcflow.domain import Status
from tipcflow.execute.run.step import StepTask


def test_an_attempt_that_a_peer_has_closed_meanwhile_needs_no_settling(tmp_path: Any) -> None:
    with open_store(tmp_path / "x.db") as store:
        run = a_run()
        store.runs.create(run, a_plan())
        step = store.plans.get(run.id).step(TRAIN)
        attempt = store.attempts.open(run.id, step.id, step.nodes, T0)
        assert store.attempts.open_number(run.id, step.id) == attempt  # so a task begins to settle it
        store.attempts.close(run.id, step.id, attempt, Status.PASS, "", [], T0 + 1)  # and a peer is quicker
        context: Any = SimpleNamespace(store=store, run_id=run.id)
        nodes: Any = None
        assert StepTask(context, step, step.nodes[:1], nodes).settle() is None
