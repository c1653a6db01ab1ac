"""A training that looks slower, in a real Airflow: measured again, by a run of its own, before the verdict."""

import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.certify import MODE, TIPCFLOW, wait_for
from tests.support.precedents import remember
from tests.support.scheduler import Scheduler

from tipcflow.airflow_api import DagRun, RunState
from tipcflow.domain import Run, Status, exit_code
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.execute.verdict import confirm

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
DEADLINE_S = 180


class Slow:
    """A chain with enough history, in which everything was fast, and a switch that makes its training slow."""

    def __init__(self, scheduler: Scheduler, name: str, switch: Path) -> None:
        self.scheduler, self.switch = scheduler, switch
        self.chain, self.params = f"toy/toy/{name}", f"toy/{name}.txt"
        folder = scheduler.site.suite / "test_tipc" / "configs" / "toy"
        text = (folder / "train_infer_python.txt").read_text()
        slow = f"norm_train:train.py --slow-while {switch}"
        (folder / f"{name}.txt").write_text(text.replace("norm_train:train.py", slow, 1))

    def trigger(self, *more: str) -> "subprocess.Popen[str]":
        """`tipcflow trigger … --wait` of a user who only has a login."""
        stack = self.scheduler.stack
        fields = ("--suite", "toy", "--params-file", self.params, "--mode", MODE, "--cluster", "local", *more)
        login = {"URL": stack.url, "USER": stack.user, "PASSWORD": stack.password}
        return subprocess.Popen(
            [str(TIPCFLOW), "trigger", "--wait", "--timeout", "4", *fields],
            env={**os.environ, **{f"TIPCFLOW_AIRFLOW_{name}": value for name, value in login.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def latest(self, trigger: str) -> Run | None:
        """The newest run of the chain with that trigger."""
        with self.scheduler.site.store() as store:
            runs = store.runs.newest(limit=20)
        mine = (run for run in runs if run.chain == self.chain and run.trigger == trigger)
        return next(mine, None)

    def doubted(self) -> Run | None:
        """The newest run, once its judge has requested a confirm run."""
        run = self.latest("ci")
        if run is None or run.status is not None:
            return None
        with self.scheduler.site.store() as store:
            return run if confirm.confirm_request_of(store, run.id) else None

    def training(self) -> bool:
        """Whether the newest run has begun its training."""
        run = self.latest("ci")
        with self.scheduler.site.store() as store:
            begun = store.attempts.of(run.id) if run and run.status is None else []
        return TRAIN in {attempt.step for attempt in begun}

    def queued(self) -> list[str]:
        """The runs that wait for slots."""
        with self.scheduler.site.store() as store:
            return [place.request.run for place in store.queue.places()]

    def both_runs(self) -> tuple[Run, Run]:
        """The run unconfirmed and its confirm run, as soon as there are both."""
        wait_for(lambda: bool(self.doubted()), what="a doubt", seconds=DEADLINE_S)
        run = self.doubted()
        assert run
        with self.scheduler.site.store() as store:
            requested = confirm.confirm_request_of(store, run.id)
            assert requested
            begun = partial(store.documents.get, requested.run, AirflowDocument)
            wait_for(lambda: bool(begun()), what="the confirm run", seconds=DEADLINE_S)
            return run, store.runs.get(requested.run)

    def reason(self, run: Run) -> str:
        """The result of the check of its training's speed."""
        with self.scheduler.site.store() as store:
            results = store.checks.results(run.id)
        (result,) = [one for one in results if one.check == "speed.batch_cost"]
        return result.reason

    def dag_run(self, run: Run) -> DagRun:
        """Airflow's view of a run."""
        with self.scheduler.site.store() as store:
            known = store.documents.get(run.id, AirflowDocument)
        assert known is not None
        return self.scheduler.api.dag_run(known.dag_id, known.run_id)


@pytest.fixture(scope="module")
def once(airflow: Scheduler) -> Iterator[Run]:
    """A run in which everything was fast; of what is compared, only the training's speed can be slow."""
    policy = airflow.site.configs / "policies" / "pr.yaml"
    kept = policy.read_text()
    # Runs of other tests are a history of the nodes' probes: a busy machine would explain the slow training.
    airflow.site.configure_policy(metrics={"batch_cost": {}}, node_health={"probe": 1000.0})
    _, run = airflow.certify("certify", suite="toy", params_file="toy/train_infer_python.txt")
    assert run.status is Status.PASS, run.reason
    yield run
    policy.write_text(kept)


@pytest.fixture
def slow(once: Run, scheduler: Scheduler, tmp_path: Path, request: pytest.FixtureRequest) -> Slow:
    """Of its own for each test: what one leaves behind is history for the next."""
    made = Slow(scheduler, request.node.name, tmp_path / "slow")
    with scheduler.site.store() as store:
        remember(store, once, runs=6, chain=made.chain, probes=False)
    made.switch.touch()
    return made


@pytest.mark.full
def test_slower_twice_is_a_regression(slow: Slow) -> None:
    process = slow.trigger()
    suspected, again = slow.both_runs()
    assert suspected.status is None
    parent, child = slow.dag_run(suspected), slow.dag_run(again)
    assert child.dag_id == confirm.TRIGGER
    stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1, stdout + stderr
    assert stdout.splitlines()[-1] == "regression"
    scheduler = slow.scheduler
    with scheduler.site.store() as store:
        run, again = store.runs.get(suspected.id), store.runs.get(again.id)
        (result,) = [one for one in store.checks.results(run.id) if one.check == "speed.batch_cost"]
        steps = [step.id.rpartition("/")[2] for step in store.plans.get(again.id).steps]
        accepted = store.history.accepted(run.chain, run.mode, run.environment)
    assert run.ended_at
    assert again.ended_at
    assert again.ended_at <= run.ended_at, "the verdict comes after it"
    assert (result.status, "the confirm run measured" in result.reason) == (Status.REGRESSION, True)
    assert steps == ["prepare", "train"], "only what is unconfirmed, and what it needs"
    assert again.nodes == tuple(reversed(run.nodes)), "on the nodes in another order"
    assert again.id not in accepted
    assert run.id not in accepted
    assert f"re-measuring: {TRAIN} (confirm run {again.id})" in stderr, "who waits is told for what"
    assert scheduler.now(parent).state is RunState.FAILED
    states = scheduler.states(child)
    assert (states["train[a]"], states["train[b]"], states["export"]) == ("success", "success", "skipped")
    log = scheduler.log(parent, "judge")
    assert f"confirm run {again.id}" in log
    assert "the confirm run measured" in log


def finished(slow: Slow, suspected: Run, process: "subprocess.Popen[str]") -> tuple[Run, str, str]:
    """The unconfirmed run, the result of its check of speed, and the last word on stdout."""
    stdout, stderr = process.communicate(timeout=DEADLINE_S)
    with slow.scheduler.site.store() as store:
        run = store.runs.get(suspected.id)
    assert run.status, stdout + stderr
    assert process.returncode == exit_code(run.status)
    return run, slow.reason(run), stdout.splitlines()[-1]


@pytest.mark.full
def test_slow_once_is_not_a_regression(slow: Slow) -> None:
    process = slow.trigger()
    suspected, again = slow.both_runs()
    slow.switch.unlink()
    run, reason, word = finished(slow, suspected, process)
    assert (run.status, word) == (Status.PASS, "pass")
    assert "not confirmed" in reason
    with slow.scheduler.site.store() as store:
        accepted = store.history.accepted(run.chain, run.mode, run.environment)
        assert store.runs.get(again.id).status is Status.PASS
    assert run.id in accepted
    assert again.id not in accepted


@pytest.mark.full
def test_a_confirm_run_that_comes_too_late_confirms_nothing(slow: Slow) -> None:
    site = slow.scheduler.site
    policy = site.configs / "policies" / "pr.yaml"
    kept = policy.read_text()
    # Ten times as slow is beyond this limit, and not beyond twice the limit, which needs no confirm run.
    site.configure_policy(confirm_minutes=1.01, floors={"speed": 6.0, "memory": 0.2, "quality": 0.05})
    process = slow.trigger()
    try:
        wait_for(lambda: bool(slow.doubted()), what="a doubt", seconds=DEADLINE_S)
        with site.store() as store:
            suspected = slow.doubted()
            assert suspected
            # As urgent as the confirm run, and first in the queue.
            first = {"id": "other", "trigger": confirm.TRIGGER, "status": None, "ended_at": None}
            other = suspected.model_copy(update=first)
            store.runs.create(other)
            slots = [(node.address, slot) for node in site.nodes.cluster.nodes for slot in range(node.slots)]
            store.queue.join(other.id, slots, owner="other", ttl_s=1200, now=suspected.created_at)

            def acquired() -> bool:
                return store.leases.acquire(other.id, slots, owner="other", ttl_s=600) is not None

            wait_for(acquired, what="the slots of the run unconfirmed", seconds=DEADLINE_S)
            run, reason, word = finished(slow, suspected, process)
            store.runs.finish(other.id, Status.FAILED, "", suspected.created_at)
            store.leases.release(other.id)
        again = slow.latest(confirm.TRIGGER)
        assert again
        ended = slow.scheduler.ended(slow.dag_run(again))
    finally:
        policy.write_text(kept)
    assert (run.status, word) == (Status.UNCONFIRMED, "unconfirmed")
    # Either may notice first that it is too late.
    assert "did not finish before its deadline" in reason or "no free slots within" in reason
    assert ended.state is RunState.FAILED
    with site.store() as store:
        assert store.runs.get(again.id).status in (Status.CANCELLED, Status.INFRA_FAILURE)


@pytest.mark.full
def test_stopped_trigger_stops_the_confirm_run(slow: Slow) -> None:
    process = slow.trigger("--stop")
    suspected, again = slow.both_runs()
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, stdout.splitlines()[-1]) == (3, "cancelled"), stderr
    ended = slow.scheduler.ended(slow.dag_run(again))
    slow.scheduler.ended(slow.dag_run(suspected))
    with slow.scheduler.site.store() as store:
        status = store.runs.get(again.id).status
        assert f"the confirm run {again.id} is {status}" in slow.reason(store.runs.get(suspected.id))
    assert status in (Status.CANCELLED, Status.INFRA_FAILURE)
    assert ended.state is RunState.FAILED


@pytest.mark.full
def test_a_busy_chain_holds_up_no_confirm_run(slow: Slow) -> None:
    """As many runs of the DAG as may be active wait: the confirm run begins, and has its slots before them."""
    scheduler = slow.scheduler
    process = slow.trigger()
    wait_for(lambda: slow.training(), what="the training", seconds=DEADLINE_S)
    fields = {"suite": "toy", "params_file": slow.params}
    others = [scheduler.start("certify", **fields) for _ in range(16)]
    try:
        wait_for(lambda: len(slow.queued()) >= 10, what="runs that wait for slots", seconds=DEADLINE_S)
        suspected, again = slow.both_runs()
        run, _, word = finished(slow, suspected, process)
        with scheduler.site.store() as store:
            began = [attempt.started_at for one in others for attempt in store.attempts.of(one.run)]
            confirmed_at = min(attempt.started_at for attempt in store.attempts.of(again.id))
    finally:
        for one in others:
            scheduler.api.set_state(one.dag_id, one.run_id, "failed")
        for one in others:
            scheduler.ended(one)
    assert (run.status, word) == (Status.REGRESSION, "regression")
    assert all(confirmed_at < at for at in began)
