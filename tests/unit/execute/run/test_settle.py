"""Closing an attempt that another task closes at the same moment."""

from types import SimpleNamespace
from typing import Any

from tests.support.stories import T0, TRAIN, a_plan, a_run

from tipcflow.domain import Status
from tipcflow.execute.run.step import StepTask
from tipcflow.store import Store


def test_an_attempt_that_a_peer_has_closed_meanwhile_needs_no_settling(tmp_path: Any) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'x.db'}") as store:
        run = a_run()
        store.create_run(run, a_plan())
        step = store.plan(run.id).step(TRAIN)
        attempt = store.open_attempt(run.id, step.id, step.nodes, T0)
        assert store.open_attempt_number(run.id, step.id) == attempt  # so a task begins to settle it
        store.close_attempt(run.id, step.id, attempt, Status.PASS, "", [], T0 + 1)  # and a peer is quicker
        context: Any = SimpleNamespace(store=store, run=run.id)
        nodes: Any = None
        assert StepTask(context, step, step.nodes[0], nodes).settle() is None
