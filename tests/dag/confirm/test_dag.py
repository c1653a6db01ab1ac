"""The confirm run that a judge requests from the scheduler when a metric is worse, with a real database."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.confirmations import told
from tests.support.stories import TRAIN, a_plan, a_run, record_run

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument, ReferencesDocument, SuiteDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import (
    CheckResult,
    Cluster,
    ConfigError,
    InfraError,
    Measurement,
    Node,
    Phase,
    Status,
    run_id_of,
)
from tipcflow.domain.keys import PartKey
from tipcflow.domain.run_documents import ClusterDocument, ConfirmationDocument
from tipcflow.execute.attempt.budget import Budget
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.verdict import confirm
from tipcflow.store import Store
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.chain.dag import certify_dag
from tipcflow_operators.confirm.dag import ConfirmResolveOperator, confirm_dag
from tipcflow_operators.tasks import request_confirm as asking

ROOT = Path(__file__).parents[3]
DAG = "sample.mobilenet_v3_small.train_infer_python"


class World:
    """An unconfirmed run, and the requests that Airflow receives."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store, self.home = store, home
        self.started: dict[str, tuple[datetime, Any]] = {}
        self.refuses: Exception | None = None
        self.notes: list[str] = []
        self.run = record_run(store, a_run(created_at=time.time()), status=None)
        self.keep(self.run.id, RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", home))
        nodes = tuple(
            Node(name=f"node-{n}", address=a, python="/p", workspace="/w", slots=1)
            for n, a in (("a", "192.0.2.1"), ("b", "192.0.2.2"))
        )
        store.documents.put(self.run.id, ClusterDocument(Cluster(name="local", nodes=nodes)))
        doubt = {"check": "speed.batch_cost", "status": Status.UNCONFIRMED, "reason": "slower"}
        store.checks.replace(self.run.id, [CheckResult(**doubt, step=TRAIN, values={"confirm": True})])

    def keep(self, run: str, request: RunRequest) -> None:
        self.store.documents.put(run, RequestDocument(request))
        self.store.documents.put(run, PolicyDocument(Policy(name="pr")))
        suite = Suite(name="sample", folder=str(self.home), dialects=("d",))
        self.store.documents.put(run, SuiteDocument(suite))

    def context(self, run: str) -> TaskContext:
        def connect(*_: Any) -> Any:
            raise AssertionError("no node is asked")

        return TaskContext(run, self.store, self.home, connect, lambda event: self.notes.append(event.text))

    def state_of(self, dag_id: str, run_id: str) -> str | None:
        return "queued" if dag_id == "confirm" and run_id in self.started else None

    def start(self, dag_id: str, run_id: str, *, run_after: datetime, conf: Any, note: str) -> None:
        if self.refuses:
            raise self.refuses
        assert dag_id == "confirm"
        self.started[run_id] = (run_after, conf)

    def measure(self, run: str, batch_cost: float) -> None:
        known: dict[str, Any] = {"step": TRAIN, "node": "node-a", "metric": "batch_cost", "unit": "s"}
        self.store.measurements.add(
            Measurement(run=run, phase=Phase.TRAIN, ordinal=number, value=batch_cost, **known)
            for number in range(6)
        )

    def ask_early(self) -> None:
        """What the release of the run's DAG run does before it releases anything."""
        dag_run = SimpleNamespace(dag_id=DAG, run_id="weekly__2026")
        asking.request_early(self.context(self.run.id), {"dag_run": dag_run})  # type: ignore[arg-type]

    def wait(self, dag_id: str = DAG) -> tuple[str, ConfirmationDocument] | None:
        """The trigger that the judge of the run's DAG run defers on."""
        dag_run = SimpleNamespace(dag_id=dag_id, run_id="weekly__2026")
        return asking.pending_confirmation(self.context(self.run.id), {"dag_run": dag_run})  # type: ignore[arg-type]


def over_budget(context: TaskContext) -> tuple[Status, str] | None:
    """The result for a step."""
    return task_phases.over_budget(context, a_plan().steps[0])


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with Store.open(f"sqlite:///{tmp_path}/t.db") as store:
        made = World(store, tmp_path)
        monkeypatch.setattr(dag_runs, "state_of", made.state_of)
        monkeypatch.setattr(dag_runs, "start", made.start)
        yield made


def test_a_confirm_run_is_started_once_and_found_again(world: World) -> None:
    first = world.wait()
    assert first
    child, requested = first
    assert requested.dag_run_id == child
    run_after, conf = world.started[child]
    assert conf == {"confirms": world.run.id}
    assert requested.run == run_id_of("confirm", child, run_after)
    assert requested.keys == (PartKey(TRAIN),)
    assert any(f"waits for confirm run {requested.run}" in note for note in world.notes)
    assert world.wait() == first, "also for a judge that died and is tried again"
    # The worker died between storing the request and starting the DAG run.
    world.started.clear()
    assert world.wait() == first
    assert world.started == {child: (run_after, conf)}


def test_further_confirm_run_is_another_dag_run(world: World) -> None:
    world.store.documents.put(world.run.id, PolicyDocument(Policy(name="pr", confirm_runs=2)))
    first = world.wait()
    assert first
    world.store.runs.create(a_run(first[1].run, trigger="confirm"), a_plan())
    world.store.runs.finish(first[1].run, Status.UNCONFIRMED, "slower", time.time())
    assert world.wait() is None, "the checks do not request a further one"
    doubt = {"check": "speed.batch_cost", "status": Status.UNCONFIRMED, "reason": "slower"}
    values = {"confirm": True, "confirmed_by": 1}
    world.store.checks.replace(world.run.id, [CheckResult(**doubt, step=TRAIN, values=values)])
    second = world.wait()
    assert second
    assert second[0] != first[0]
    assert second[1].earlier == (first[1].run,)
    assert [*world.started] == [first[0], second[0]]
    assert world.wait() == second
    assert [place.request.run for place in world.store.queue.places()] == [second[1].run], "before it starts"


@pytest.mark.parametrize("runs", [1, 2])
def test_ended_dag_run_without_a_status_is_not_waited_for_again(world: World, runs: int) -> None:
    """A user marked it as failed: the judge that resumes must not defer on it until its deadline."""
    world.store.documents.put(world.run.id, PolicyDocument(Policy(name="pr", confirm_runs=runs)))
    assert world.wait()
    dag_run = SimpleNamespace(dag_id=DAG, run_id="weekly__2026")
    assert asking.further_confirmation(world.context(world.run.id), {"dag_run": dag_run}) is None  # type: ignore[arg-type]


def test_chains_of_one_weekly_run_have_separate_confirm_runs(world: World) -> None:
    first = world.wait()
    confirm.drop_request(world.store, world.run.id)
    second = world.wait("sample.other.train_infer_python")
    assert first
    assert second
    assert first[0] != second[0]


def test_confirm_run_precedes_runs_that_wait_for_slots(world: World) -> None:
    store, slots = world.store, [("192.0.2.1", 0), ("192.0.2.2", 0)]
    store.documents.put(world.run.id, ReferencesDocument(References(suite="sample")))
    for number in range(1, 7):
        record_run(store, a_run(f"before-{number}", created_at=number))
        world.measure(f"before-{number}", 0.1)
    world.measure(world.run.id, 1.0)
    assert store.leases.acquire(world.run.id, slots, owner="o", ttl_s=60)
    store.runs.create(a_run("change", trigger="ci"))
    store.queue.join("change", slots, owner="o", ttl_s=60)
    world.ask_early()
    store.leases.release(world.run.id)
    assert store.leases.acquire("change", slots, owner="o", ttl_s=60) is None, "it is not its turn"
    child, requested = world.wait() or ("", None)
    assert requested
    assert list(world.started) == [child]
    assert store.leases.acquire(requested.run, slots, owner="o", ttl_s=60)
    assert store.runs.get(requested.run).trigger == "confirm"


def test_a_run_that_airflow_rejects_is_reported_and_not_waited_for(world: World) -> None:
    world.refuses = ConfigError("DAG confirm is paused: its run would never start")
    assert world.wait() is None
    _, medians, why, failed = told(world.store, world.run) or ("", {}, "", "")
    assert (medians, failed) == ({}, "")
    assert why == "is not waited for: DAG confirm is paused: its run would never start"
    world.refuses = None
    assert world.wait() is None, "nor asked for again, before the run is cleared"


def test_after_its_deadline_no_task_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    requested = (world.wait() or ("", None))[1]
    assert requested
    monkeypatch.setattr("time.time", lambda: requested.until + 1)
    assert world.wait() is None
    assert told(world.store, world.run) == (requested.run, {}, "did not finish before its deadline", "")


def resolve(world: World, run: str, **conf: Any) -> RunRequest:
    """The request of a DAG run of `confirm` that is our run `run`."""
    context: Any = {"dag_run": SimpleNamespace(dag_id="confirm", run_id="confirm__x")}
    operator = ConfirmResolveOperator(task_id="resolve")
    return operator.read_request(world.context(run), context, conf)


def test_confirm_run_follows_its_request(world: World) -> None:
    requested = (world.wait() or ("", None))[1]
    assert requested
    made = resolve(world, requested.run, confirms=world.run.id)
    assert (made.trigger, made.confirms, made.only) == ("confirm", world.run.id, (PartKey(TRAIN),))
    assert made.ends_at == requested.until
    assert made.owner == "airflow confirm confirm__x"


@pytest.mark.parametrize("conf", [{}, {"confirms": ""}, {"confirms": 7}, {"confirms": "x", "mode": "y"}])
def test_confirm_run_without_a_request_is_a_config_error(world: World, conf: Any) -> None:
    with pytest.raises(ConfigError, match="this DAG is started by task `judge`"):
        resolve(world, "other", **conf)


def test_another_dag_run_than_the_one_that_was_requested_does_nothing(world: World) -> None:
    with pytest.raises(InfraError, match="did not request this confirm run"):
        resolve(world, "other", confirms=world.run.id)
    assert world.wait()
    with pytest.raises(InfraError, match="did not request this confirm run"):
        resolve(world, "other", confirms=world.run.id)


def test_a_confirm_run_that_no_task_waits_for_starts_nothing(world: World) -> None:
    requested = (world.wait() or ("", None))[1]
    assert requested
    world.store.runs.create(a_run(requested.run, trigger="confirm", created_at=time.time()))
    world.keep(requested.run, resolve(world, requested.run, confirms=world.run.id))
    assert over_budget(world.context(requested.run)) is None
    confirm.cancel_request(world.store, world.run.id, "the DAG confirm is paused")
    result = over_budget(world.context(requested.run))
    assert result
    assert result[0] is Status.CANCELLED
    assert "no longer waits" in result[1]


def test_confirm_dag_ignores_limits_and_precedes_all_tasks() -> None:
    chain, again = certify_dag(ROOT / "configs"), confirm_dag()
    # Behind runs of the chain, all of which wait for their confirm runs, it would never begin.
    assert again.max_active_runs > 10 * chain.max_active_runs
    assert sorted(again.task_ids) == sorted(chain.task_ids)
    # Airflow counts the tasks downstream of a task.
    most = sum(task.priority_weight for task in chain.tasks)
    assert min(task.priority_weight for task in again.tasks) > most


def test_run_over_its_budget_is_confirmed_in_the_confirm_minutes(world: World) -> None:
    policy = Policy(name="pr", budget_minutes=1e-9, confirm_minutes=5)
    world.store.documents.put(world.run.id, PolicyDocument(policy))
    assert world.context(world.run.id).budget.ends < time.time()
    before = time.time()
    requested = (world.wait() or ("", None))[1]
    assert requested
    assert before + 300 <= requested.until <= time.time() + 300
    world.store.runs.create(a_run(requested.run, trigger="confirm", created_at=time.time()), a_plan())
    world.keep(requested.run, resolve(world, requested.run, confirms=world.run.id))
    world.store.documents.put(requested.run, PolicyDocument(policy))
    nodes = tuple(Node(name=f"node-{n}", address=n, python="/p", workspace="/w", slots=2) for n in "ab")
    cluster = Cluster(name="local", nodes=nodes)
    world.store.documents.put(requested.run, ClusterDocument(cluster))
    context = world.context(requested.run)
    assert context.budget == Budget(300, requested.until)
    assert over_budget(context) is None
    world.store.attempts.open(requested.run, TRAIN, ("node-a",), requested.until - 100)
    assert context.spec(a_plan().steps[0], "node-a", 1).deadline_s == 100, "its steps are cut at its own end"
