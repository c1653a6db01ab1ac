"""A weekly run that looks slower, in a real Airflow: three confirm runs, one after the other, decide."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.certify import wait_for
from tests.support.precedents import remember
from tests.support.scheduler import Scheduler

from tipcflow.airflow_api import DagRun, RunState
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import CheckResult, Run, Status
from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.execute.verdict import confirm

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
CHAIN, PARAMS, MODE = "toy/toy/second", "toy/second.txt", "whole_train_whole_infer"
DEADLINE_S = 300


def same_batches(scheduler: Scheduler) -> Path:
    """Make the batches of all modes alike: a training with other batches confirms no speed."""
    params = scheduler.site.suite / "test_tipc" / "configs" / PARAMS
    params.write_text(params.read_text().replace("whole_train_whole_infer=8", "whole_train_whole_infer=4"))
    return params


class Weekly:
    """A chain of the weekly run with a switch that makes its training ten times as slow."""

    def __init__(self, scheduler: Scheduler, switch: Path) -> None:
        self.scheduler, self.switch = scheduler, switch
        params = same_batches(scheduler)
        slow = f"norm_train:train.py --slow-while {switch}"
        params.write_text(params.read_text().replace("norm_train:train.py", slow, 1))

    def start(self) -> DagRun:
        """Start the weekly run of this chain only."""
        return self.scheduler.start("weekly", chains=[CHAIN], mode=MODE, cluster="local")

    def run(self) -> Run:
        """The newest run of the chain that the weekly run has started."""
        with self.scheduler.site.store() as store:
            runs = store.runs.newest(limit=30)
        return next(run for run in runs if run.chain == CHAIN and run.trigger == "weekly")

    def request(self) -> ConfirmationDocument | None:
        """The request for a confirm run of the run in progress."""
        run = self.run()
        with self.scheduler.site.store() as store:
            return confirm.confirm_request_of(store, run.id) if run.status is None else None

    def second(self) -> ConfirmationDocument:
        """The request for the second confirm run, as soon as there is one."""

        def requested() -> bool:
            found = self.request()
            return bool(found and found.earlier)

        wait_for(requested, what="the second confirm run", seconds=DEADLINE_S)
        found = self.request()
        assert found
        return found

    def result(self, run: Run) -> CheckResult:
        """The result of the check of the training's speed."""
        with self.scheduler.site.store() as store:
            (result,) = [one for one in store.checks.results(run.id) if one.check == "speed.batch_cost"]
        return result

    def confirm_runs(self, run: Run) -> list[Run]:
        """The confirm runs of a run, in their order."""
        with self.scheduler.site.store() as store:
            found = confirm.confirm_request_of(store, run.id)
            assert found
            return [store.runs.get(name) for name in (*found.earlier, found.run)]

    def alerts(self) -> list[str]:
        """The first bad runs of the chain's alerts."""
        with self.scheduler.site.store() as store:
            return [alert.first for alert in store.tracked_alerts.all() if alert.chain == CHAIN]

    def page(self, run: Run) -> str:
        """The run's page."""
        return self.scheduler.call("GET", f"/certification/runs/{run.id}").text


@pytest.fixture(scope="module")
def once(airflow: Scheduler) -> Iterator[Run]:
    """A weekly run in which everything was fast, by the shipped policy; only speeds of trainings are compared."""
    policy = airflow.site.configs / "policies" / "weekly.yaml"
    kept = policy.read_text()
    content = yaml.safe_load(kept)
    assert content["confirm_runs"] == 3
    # Runs of other tests are a history of the nodes' probes: a busy machine would explain the slow training.
    content |= {"metrics": {"batch_cost": {}}, "node_health": {"probe": 1000.0}}
    policy.write_text(yaml.safe_dump(content))
    params = airflow.site.suite / "test_tipc" / "configs" / PARAMS
    original = params.read_text()
    same_batches(airflow)
    airflow.api.unpause("weekly")
    airflow.ended(airflow.start("weekly", chains=[CHAIN], mode=MODE, cluster="local"), DEADLINE_S)
    with airflow.site.store() as store:
        run = next(run for run in store.runs.newest(limit=10) if run.chain == CHAIN)
        assert run.status is Status.PASS, run.reason
        remember(store, run, runs=7, chain=CHAIN, probes=False, noise=0.01)
    yield run
    policy.write_text(kept)
    params.write_text(original)


@pytest.fixture
def weekly(once: Run, scheduler: Scheduler, tmp_path: Path) -> Weekly:
    made = Weekly(scheduler, tmp_path / "slow")
    made.switch.touch()
    return made


def test_three_slow_confirm_runs_are_one_regression_and_one_alert(weekly: Weekly) -> None:
    """A run that waits for the nodes gets them after the last confirm run, not between two of them."""
    scheduler = weekly.scheduler
    weekly_run = weekly.start()
    wait_for(lambda: bool(weekly.request()), what="a confirm run", seconds=DEADLINE_S)
    rival = scheduler.start("certify", suite="toy", params_file=PARAMS)
    second = weekly.second()
    page = weekly.page(weekly.run())
    ended = scheduler.ended(weekly_run, DEADLINE_S)
    run, result = weekly.run(), weekly.result(weekly.run())
    runs = weekly.confirm_runs(run)
    scheduler.api.set_state(rival.dag_id, rival.run_id, "failed")
    scheduler.ended(rival)
    assert (ended.state, run.status) == (RunState.FAILED, Status.REGRESSION)
    assert [one.status for one in runs] == [Status.PASS] * 3
    assert len({one.id for one in runs}) == 3
    assert second.run == runs[1].id
    assert result.reason.partition(";")[0].endswith("of 8 runs")
    assert "and 3 confirm runs measured 0.1 s, 0.1 s, 0.1 s" in result.reason
    assert weekly.alerts() == [run.id]
    assert "shown by 1 confirm run: the verdict waits for a further confirm run, until" in page
    assert "confirm run 3</a>" in weekly.page(run)
    with scheduler.site.store() as store:
        assert not {run.id, *(one.id for one in runs)} & set(
            store.history.accepted(run.chain, run.mode, run.environment)
        )
        began = [min(one.started_at for one in store.attempts.of(each.id)) for each in runs]
        rival_began = [one.started_at for one in store.attempts.of(rival.run)]
    assert began == sorted(began)
    assert all(at > began[-1] for at in rival_began)


def test_fast_confirm_runs_after_a_slow_one_refute_the_regression(weekly: Weekly) -> None:
    alerts = weekly.alerts()
    weekly_run = weekly.start()
    weekly.second()
    weekly.switch.unlink()
    ended = weekly.scheduler.ended(weekly_run, DEADLINE_S)
    run = weekly.run()
    assert (ended.state, run.status) == (RunState.SUCCESS, Status.PASS), run.reason
    assert len(weekly.confirm_runs(run)) == 3, "the second disagrees with the first, so the third decides"
    assert weekly.result(run).reason.endswith("but 3 confirm runs measured 0.1 s, 0.01 s, 0.01 s: not confirmed")
    assert weekly.alerts() == alerts
    with weekly.scheduler.site.store() as store:
        assert run.id in store.history.accepted(run.chain, run.mode, run.environment)


def test_a_stopped_second_confirm_run_leaves_the_decision_to_the_first(weekly: Weekly) -> None:
    weekly_run = weekly.start()
    second = weekly.second()
    scheduler = weekly.scheduler
    wait_for(
        lambda: any(run.run_id == second.dag_run_id for run in scheduler.api.unfinished()),
        what="its DAG run",
        seconds=DEADLINE_S,
    )
    scheduler.api.set_state(confirm.TRIGGER, second.dag_run_id, "failed")
    ended = scheduler.ended(weekly_run, DEADLINE_S)
    run, result = weekly.run(), weekly.result(weekly.run())
    assert (ended.state, run.status) == (RunState.FAILED, Status.REGRESSION), run.reason
    first, lost = weekly.confirm_runs(run)
    assert first.status is Status.PASS
    assert lost.status in (Status.CANCELLED, Status.INFRA_FAILURE)
    assert (
        f"the confirm run measured 0.1 s (only 1 of 3: the confirm run {lost.id} is {lost.status}" in result.reason
    )


def test_second_confirm_run_without_slots_ends_at_its_deadline(weekly: Weekly) -> None:
    scheduler = weekly.scheduler
    site = scheduler.site
    weekly_run = weekly.start()
    wait_for(lambda: bool(weekly.request()), what="a confirm run", seconds=DEADLINE_S)
    run, first = weekly.run(), weekly.request()
    assert first
    with site.store() as store:
        wait_for(lambda: bool(store.attempts.of(first.run)), what="its training", seconds=DEADLINE_S)
        policy = store.documents.get(run.id, PolicyDocument)
        assert policy
        # Not those of the first one: its deadline is stored.
        store.documents.put(run.id, PolicyDocument(policy.root.model_copy(update={"confirm_minutes": 1.0})))
        # As urgent as a confirm run, and before the second one in the queue.
        other = run.model_copy(update={"id": "another", "trigger": confirm.TRIGGER})
        store.runs.create(other)
        slots = [(node.address, slot) for node in site.nodes.cluster.nodes for slot in range(node.slots)]
        store.queue.join(other.id, slots, owner="another", ttl_s=1200)
        wait_for(
            lambda: store.leases.acquire(other.id, slots, owner="another", ttl_s=1200) is not None,
            what="the slots",
            seconds=DEADLINE_S,
        )
        ended = scheduler.ended(weekly_run, DEADLINE_S)
        store.runs.finish(other.id, Status.FAILED, "", store.now())
        store.leases.release(other.id)
    run, result = weekly.run(), weekly.result(weekly.run())
    assert (ended.state, run.status) == (RunState.FAILED, Status.REGRESSION), run.reason
    assert "the confirm run measured 0.1 s (only 1 of 3: the confirm run" in result.reason
    # Either may notice first that it is too late.
    assert "did not finish before its deadline" in result.reason or "no free slots within" in result.reason
