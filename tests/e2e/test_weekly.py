"""The weekly run of three chains through a real Airflow: one loses accuracy; stopped midway, it continues."""

import pytest
import yaml
from tests.support.certify import wait_for
from tests.support.scheduler import Scheduler

from tipcflow.airflow_api import DagRun, RunState
from tipcflow.domain import Run, Status, TipcflowError, run_id_of
from tipcflow_operators.airflow.child_runs import child_run_id

pytestmark = pytest.mark.e2e
CHAINS = ("second", "third", "train_infer_python")
MODE = "whole_train_whole_infer"


def child(scheduler: Scheduler, weekly: DagRun, name: str, number: int = 1) -> Run | None:
    dag_run_id = child_run_id(weekly.run_id, number)
    with scheduler.site.store() as store:
        try:
            return store.runs.get(run_id_of(f"toy.toy.{name}", dag_run_id, weekly.run_after))
        except TipcflowError:
            return None


def demand(scheduler: Scheduler, accuracy: float) -> None:
    """What the toy must reach in the weekly mode; it always prints 0.875 %."""
    reference = {"model": "toy", "mode": MODE, "metric": "top1", "target": accuracy, "tolerance": 0.001}
    content = {"suite": "toy", "references": [{**reference, "because": "a test wants it"}]}
    folder = scheduler.site.configs / "references"
    folder.mkdir(exist_ok=True)
    (folder / "toy.yaml").write_text(yaml.safe_dump(content))


def test_weekly_finds_the_loss_and_continues_after_a_stop(scheduler: Scheduler) -> None:
    scheduler.api.unpause("weekly")
    demand(scheduler, 0.99)  # parameters of the first chain only
    weekly = scheduler.start("weekly", chains=["toy/*"], mode=MODE, cluster="local")

    def first_verdict() -> bool:
        return any((run := child(scheduler, weekly, name)) and run.status for name in CHAINS)

    scheduler.until(weekly, first_verdict, "the first verdict", seconds=240)
    demand(scheduler, 0.00875)
    scheduler.api.set_state("weekly", weekly.run_id, "failed")
    wait_for(lambda: scheduler.now(weekly).state.ended, what="the stop", seconds=60)
    before = {name: run for name in CHAINS if (run := child(scheduler, weekly, name)) and run.status}
    assert len(before) < len(CHAINS), "it was stopped midway"
    assert any(run.status is Status.FAILED and "top1" in run.reason for run in before.values()), before

    scheduler.clear(weekly, only_failed=False)
    ended = scheduler.ended(weekly, seconds=400)
    assert ended.state is RunState.FAILED  # one chain lost accuracy
    for name, run in before.items():
        assert child(scheduler, weekly, name) == run, "what has a verdict is not run again"
        assert child(scheduler, weekly, name, 2) is None
    for name in set(CHAINS) - set(before):
        runs = [run for number in (1, 2, 3) if (run := child(scheduler, weekly, name, number))]
        assert runs[-1].status is Status.PASS, runs
    result = "".join(path.read_text() for path in (scheduler.site.home / "weekly").glob("*.md"))
    assert "toy/toy/second" in result
    assert "failed" in result
