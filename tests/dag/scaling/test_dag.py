"""The tasks of the DAG `scaling` with the sample suite and a real database; only Airflow's responses are fake."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization
from tests.support.scaling import kept, trained
from tests.support.stories import a_run, open_store

from tipcflow.domain import Status, run_id_of
from tipcflow.domain.run.scaling import ScalingDocument
from tipcflow.store import Store
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.scaling.check import CheckOperator
from tipcflow_operators.scaling.dag import scaling_dag
from tipcflow_operators.scaling.measure import MeasureOperator
from tipcflow_operators.scaling.request import SCALING_PARAMS
from tipcflow_operators.scaling.result import ResultOperator
from tipcflow_operators.triggers.dag_run import DagRunTrigger
from tipcflow_operators.weekly.turn import TurnTrigger

ROOT = Path(__file__).parents[3]
PARENT = "manual__2026-11-26T00:00:00+00:00"
AFTER = datetime(2026, 11, 26, tzinfo=UTC)
SUITE = "mobilenet_v3_small_benchmark"
FILE = "test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
NODE = {"slots": 2, "python": "/p", "workspace": "/w", "frameworks": ["paddlepaddle"]}


class World:
    """A DAG run of `scaling`; a test ends the DAG runs that it starts."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.states: dict[str, str] = {}
        self.started: list[tuple[str, dict[str, Any]]] = []
        self.tasks: dict[str, str | None] = {}
        self.cases: list[dict[str, Any]] = []
        self.notes: list[str] = []
        monkeypatch.setenv("TIPCFLOW_HOME", str(home))
        monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(home / "configs"))
        monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "")
        monkeypatch.setattr(dag_runs, "state_of", lambda dag_id, run_id: self.states.get(run_id))
        monkeypatch.setattr(dag_runs, "task_states", lambda dag_id, run_id, task: self.tasks)
        monkeypatch.setattr(dag_runs, "start", self._start)
        monkeypatch.setattr(
            "tipcflow_operators.scaling.result.set_note", lambda context, line, log: self.notes.append(line)
        )
        shutil.copytree(ROOT / "configs" / "policies", home / "configs" / "policies")
        shutil.copytree(ROOT / "configs" / "dialects", home / "configs" / "dialects")
        for folder in ("clusters", "suites"):
            (home / "configs" / folder).mkdir()
        nodes = [{"name": f"node-{number}", "address": f"192.0.2.{number}", **NODE} for number in (1, 2)]
        cluster = {"name": "lab", "nodes": nodes}
        (home / "configs" / "clusters" / "lab.yaml").write_text(yaml.safe_dump(cluster))
        suite = yaml.safe_load((ROOT / "configs" / "suites" / f"{SUITE}.yaml").read_text())
        suite["folder"] = str(ROOT / "examples" / "mobilenet_v3_small")
        (home / "configs" / "suites" / f"{SUITE}.yaml").write_text(yaml.safe_dump(suite))
        self.params: dict[str, Any] = {
            "suite": SUITE,
            "params_file": FILE,
            "cluster": "lab",
            "policy": "pr",
            "repeats": 2,
            "batch_size_per_device": 4,
            "seed": None,
        }
        open_store(home / "tipcflow.db").close()

    def _start(self, dag_id: str, run_id: str, *, run_after: datetime, conf: dict[str, Any], note: str) -> None:
        assert (dag_id, run_after) == ("certify", AFTER)
        assert PARENT in note
        self.started.append((run_id, conf))
        self.states[run_id] = "queued"

    def store(self) -> Store:
        return open_store(self.home / "tipcflow.db")

    def context(self, index: int = -1) -> Any:
        dag_run = SimpleNamespace(dag_id="scaling", run_id=PARENT, run_after=AFTER, conf={}, run_type="manual")
        ti = SimpleNamespace(xcom_pull=lambda task_ids: self.cases, map_index=index)
        return {"dag_run": dag_run, "params": self.params, "ti": ti}

    def check(self) -> list[dict[str, Any]]:
        self.cases = CheckOperator(task_id="check").execute(self.context())
        return self.cases

    def measure(self, index: int) -> MeasureOperator:
        return MeasureOperator(task_id="measure", case=self.cases[index])

    def waits(self, index: int) -> Any:
        """Execute the task of a topology; return the trigger that it waits for."""
        with pytest.raises(TaskDeferred) as deferred:
            self.measure(index).execute(self.context(index))
        return deferred.value.trigger

    def end(self, index: int, speed: float | Status) -> str:
        """End the run of a topology with a speed or with a status; return the result of its task."""
        child = self.started[-1][0]
        run = run_id_of("certify", child, AFTER)
        topology = self.cases[index]["topology"]
        with self.store() as store:
            if isinstance(speed, Status):
                store.runs.create(a_run(run))
                store.runs.finish(run, speed, f"it is {speed.value}", 2e9)
            else:
                kept(store, run, trained(int(topology[0]), int(topology[2]), 2), [speed, speed])
                store.runs.finish(run, Status.PASS, "", 2e9)
        self.states[child] = "success"
        return self.measure(index).resume(self.context(index), {"run_id": child, "state": "success"})

    def result(self) -> str:
        return ResultOperator(task_id="result").execute(self.context())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_the_dag_can_be_serialized() -> None:
    dag = scaling_dag()
    assert dag.task_ids == ["check", "measure", "result"]
    assert sorted(dag.params) == sorted(SCALING_PARAMS)
    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == "scaling"
    for name in SCALING_PARAMS:
        dag.params.get_param(name).resolve()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"topologies": ["2x8"]}, "topologies: unknown topology; found '2x8'"),
        ({"topologies": ["4n1g"]}, "topologies: the cluster does not have 4n1g"),
        ({"global_batch_size": 8}, "exactly one of the two is required; found .both."),
        ({"batch_size_per_device": 0}, "exactly one of the two is required; found .neither."),
        ({"batch_size_per_device": -1}, "batch_size_per_device: .*found '-1'"),
        ({"precision": "fp8"}, "precision: unknown precision; found 'fp8'; expected one of fp32, amp"),
        ({"precision": "amp"}, "on CPUs, Paddle ignores mixed precision .amp. and trains in fp32"),
        (
            {"global_batch_size": 7, "batch_size_per_device": 0},
            "global_batch_size: 2 devices of 1n2g do not divide the batch; found '7'; expected a multiple of 2",
        ),
        ({"take": 101}, r"skip, take: .*found '50 \+ 101'; expected at most 150 together"),
        ({"cluster": "lba"}, "unknown cluster; found 'lba'"),
        ({"params_file": "nothing.txt"}, "nothing.txt"),
        ({"repeat": 3}, "repeat: unknown param"),
        ({"mode": "lite_train_lite_infer"}, "mode: unknown param"),
    ],
)
def test_wrong_param_is_reported_before_a_run_starts(world: World, wrong: dict[str, Any], words: str) -> None:
    world.params |= wrong
    with pytest.raises(AirflowFailException, match=f"(?s)^config_error: .*{words}"):
        world.check()
    assert world.started == []


def test_topologies_are_trained_one_at_a_time_and_compared(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.check()
    fits = [case["topology"] for case in world.cases if not case["why"]]
    assert fits == ["1n1g", "1n2g", "2n1g", "2n2g"]
    speeds = {"1n1g": 100.0, "1n2g": 180.0, "2n1g": 170.0, "2n2g": 300.0}
    for index, case in enumerate(world.cases):
        if case["why"]:
            with pytest.raises(AirflowSkipException, match="needed"):
                world.measure(index).execute(world.context(index))
            continue
        world.tasks = {f"measure_{other}": "success" for other in range(index)}
        trigger = world.waits(index)
        assert isinstance(trigger, DagRunTrigger)
        assert world.end(index, speeds[case["topology"]]) == "pass"
    assert [conf["case"] for _, conf in world.started] == [
        f"dynamic_bs4_fp32_DP_{name}" for name in ("N1C1", "N1C2", "N2C2", "N2C4")
    ]
    conf = dict(world.started[-1][1])
    assert (conf["mode"], conf["repeats"], "seed" in conf) == ("benchmark_train", 2, False)
    assert world.result() == "2n2g: 300.00 samples/s, speed-up 3.00, efficiency 75.0 %"
    assert world.notes == ["2n2g: 300.00 samples/s, speed-up 3.00, efficiency 75.0 %"]
    printed = capsys.readouterr().out
    assert "| topology | devices |" in printed
    assert "4n8g: not_run: 4 nodes needed, cluster lab has 2" in printed
    with world.store() as store:
        last = run_id_of("certify", world.started[-1][0], AFTER)
        document = store.documents.get(last, ScalingDocument)
    assert document is not None
    assert [entry.median_speed for entry in document.topologies if entry.run] == list(speeds.values())


def test_topology_waits_for_earlier_topologies(world: World) -> None:
    world.check()
    world.tasks = {"measure_0": "deferred"}
    trigger = world.waits(1)
    assert isinstance(trigger, TurnTrigger)
    assert (trigger.ahead(), world.started) == (1, [])
    world.tasks = {"measure_0": "failed"}
    assert trigger.ahead() == 0, "a topology that failed does not block the others"
    _, fields = trigger.serialize()
    assert TurnTrigger(**fields).ahead() == 0


def test_a_retried_task_starts_nothing_twice(world: World) -> None:
    world.check()
    first, again = world.waits(0), world.waits(0)
    assert (first.run_id, len(world.started)) == (again.run_id, 1)
    world.end(0, 100.0)
    assert world.measure(0).execute(world.context(0)) == "pass", "cleared: the verdict is kept"
    assert len(world.started) == 1


def test_a_failed_training_fails_the_dag_run(world: World) -> None:
    world.params["topologies"] = ["1n1g", "2n1g"]
    world.check()
    world.waits(0)
    world.end(0, 100.0)
    world.tasks = {"measure_0": "success"}
    world.waits(1)
    with pytest.raises(AirflowFailException, match=r"^failed: it is failed$"):
        world.end(1, Status.FAILED)
    with pytest.raises(AirflowFailException, match=r"^2n1g: failed: it is failed$"):
        world.result()
    with world.store() as store:
        document = store.documents.get(run_id_of("certify", world.started[-1][0], AFTER), ScalingDocument)
    assert document is not None
    assert [(entry.topology, entry.speedup) for entry in document.topologies] == [("1n1g", 1.0), ("2n1g", None)]


def test_a_broken_training_is_repeated_when_its_task_is_cleared(world: World) -> None:
    world.check()
    world.waits(0)
    with pytest.raises(AirflowFailException, match=r"^infra_failure: it is infra_failure$"):
        world.end(0, Status.INFRA_FAILURE)
    world.waits(0)
    assert [child.rpartition("~")[2] for child, _ in world.started][1] == "2"
    world.end(0, 100.0)
    world.cases = world.cases[:1]
    assert world.result() == "1n1g: 100.00 samples/s, speed-up 1.00, efficiency 100.0 %"


def test_result_fails_without_a_trained_topology(world: World) -> None:
    world.check()
    world.cases = [case for case in world.cases if case["why"]]
    with pytest.raises(AirflowFailException, match=r"^no topology was trained$"):
        world.result()


def test_topology_whose_run_was_not_started_fails_the_dag_run(world: World) -> None:
    world.params["topologies"] = ["1n1g", "2n1g"]
    world.check()
    world.waits(0)
    world.end(0, 100.0)
    with pytest.raises(
        AirflowFailException, match=r"^2n1g: infra_failure: no run was started; see the log of its"
    ):
        world.result()
