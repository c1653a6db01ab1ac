"""The tasks of the DAG `bisect` with a real database and a git repository; only Airflow's responses are fake."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization
from tests.support.airflow.world import AFTER, ROOT, DagWorld
from tests.support.stories import T0, a_run, losses, record_run

from tipcflow.domain import Status, run_id_of
from tipcflow.domain.alert.entry import Alert, Moved
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow_operators.bisect.check import CheckOperator
from tipcflow_operators.bisect.dag import bisect_dag
from tipcflow_operators.bisect.request import BISECT_PARAMS
from tipcflow_operators.bisect.search import SearchOperator
from tipcflow_operators.tasks.result_verdict import ResultVerdictOperator

COMMITS = 9
CHAIN = "toy/toy/train_infer_python"
BUILDS = [f"paddlepaddle==3.{number}" for number in range(COMMITS)]
Value = Callable[[int], float | Status]


class World(DagWorld):
    """A DAG run of `bisect` over eight commits after a good one; runs end when they are waited for."""

    dag_id, parent = "bisect", "auto__bad-run"

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(home, monkeypatch, [f"Change {number}" for number in range(COMMITS)])
        self.ended: set[str] = set()
        self.params |= {"good": f"HEAD~{COMMITS - 1}", "bad": "HEAD", "metric": "batch_cost"}

    def check(self) -> dict[str, Any]:
        self.xcom["check"] = CheckOperator(task_id="check").execute(self.context())
        return self.xcom["check"]

    def go_on(self, deferred: TaskDeferred | None = None) -> TaskDeferred | dict[str, str]:
        """Execute the task, or resume it when its run has ended; return what it waits for next."""
        search = SearchOperator(task_id="search")
        try:
            if deferred is None:
                return search.execute(self.context())
            event = {"run_id": deferred.trigger.run_id, "state": self.states.get(deferred.trigger.run_id)}
            return search.resume(self.context(), event, **(deferred.kwargs or {}))
        except TaskDeferred as waits:
            return waits

    def end(self, waits: TaskDeferred | dict[str, str], value: Value) -> TaskDeferred:
        """End the run that the task waits for, with a batch_cost or with a status and nothing measured."""
        assert isinstance(waits, TaskDeferred)
        child = waits.trigger.run_id
        conf = dict(self.started)[child]
        version = {"suite_commit": conf["suite_ref"]}
        if "framework" in conf:
            version |= {"suite_sha256": "1" * 64, "framework": conf["framework"].replace("==", " ")}
        ours, number = run_id_of("certify", child, AFTER), len(self.ended)
        self.ended.add(child)
        fields = {"created_at": T0 + 100 * number, "trigger": "bisect", "chain": CHAIN, "environment": "cpu"}
        self.states[child] = "success"
        measured = value(self.place_of(conf))
        with self.store() as store:
            if isinstance(measured, Status):
                version |= {"suite_commit": ""} if measured is Status.CONFIG_ERROR else {}
                store.runs.create(a_run(ours, **fields, **version))
                store.runs.finish(ours, measured, f"it is {measured.value}", T0 + 100 * number + 60)
            else:
                record_run(store, a_run(ours, **fields, **version))
                store.measurements.add(losses(ours, [measured], metric="batch_cost", unit="s"))
        return waits

    def search(self, value: Value) -> dict[str, str]:
        """Run the task to its end."""
        waits = self.go_on()
        while isinstance(waits, TaskDeferred):
            waits = self.go_on(self.end(waits, value))
        self.xcom["search"] = waits
        return waits

    def place_of(self, conf: dict[str, Any]) -> int:
        """The index of the version that a run tests."""
        return BUILDS.index(conf["framework"]) if "framework" in conf else self.commits.index(conf["suite_ref"])

    @property
    def places(self) -> list[int]:
        """The versions of the runs that were started, in order."""
        return [self.place_of(conf) for _, conf in self.started]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_dag_has_three_tasks_and_a_param_for_each_part() -> None:
    dag = bisect_dag(ROOT / "configs")
    assert set(dag.task_ids) == {"check", "search", "verdict"}
    assert set(dag.params) == set(BISECT_PARAMS)
    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == "bisect"


def test_slower_commit_is_found_and_attached_to_the_alert(world: World) -> None:
    with world.store() as store:
        bad = a_run("bad-run", chain=CHAIN, suite="toy", cluster="local", environment="cpu")
        store.runs.create(bad)
        moved = Moved(check="speed.batch_cost", step="v/train", metric="batch_cost", ratio=1.2, first=bad.id)
        facts = {"chain": CHAIN, "suite": "toy", "mode": bad.mode, "environment": "cpu", "state_at": T0}
        store.tracked_alerts.open(
            Alert(**facts, first=bad.id, first_at=T0, metrics=(moved,), newest=bad.id, newest_at=T0), "slow", at=T0
        )
    world.conf, world.user = {"run": "bad-run"}, "ci"
    titles = [title for _, title, _ in world.check()["commits"]]
    assert titles == [f"Change {number}" for number in range(COMMITS)]
    result = world.search(lambda place: 1.2 if place >= 6 else 1.0)
    assert world.places[:4] == [8, 8, 0, 0], "the ends first"
    assert (result["status"], result["run"]) == ("pass", "bad-run")
    assert result["verdict"].startswith(f"100 %: {world.commits[6][:8]} 'Change 6' (")
    assert result["verdict"].endswith("batch_cost: 1 before, 1.2 since (1.200 x)")
    assert ResultVerdictOperator(task_id="verdict", of="search").execute(world.context()) == result["verdict"]
    assert {run_id.partition("__")[0] for run_id, _ in world.started} == {"bisect"}
    with world.store() as store:
        stored = store.documents.get("bad-run", BisectionDocument)
        events = store.tracked_alerts.events(1)
    assert stored is not None
    assert (stored.is_certain, [each.id for each in stored.changes]) == (True, [world.commits[6]])
    assert (stored.dag_run, len(stored.runs)) == (World.parent, len(world.started))
    shown = [(event.kind.value, event.who, event.text) for event in events]
    assert shown[1:] == [("bisected", "ci", result["verdict"])], "the user who started the DAG run"
    # Cleared: the stored runs are the result, and the alert gets no second event.
    assert world.go_on() == result
    with world.store() as store:
        assert len(store.tracked_alerts.events(1)) == 2


def test_failure_is_found_with_runs_in_parallel(world: World) -> None:
    world.conf = {"metric": "failure", "parallel": 2}
    world.check()
    result = world.search(lambda place: Status.FAILED if place >= 3 else 1.0)
    assert result["status"] == "pass"
    assert f"{world.commits[3][:8]} 'Change 3'" in result["verdict"]
    assert result["run"].startswith("202"), "the first run of the search has the result"
    assert world.go_on() == result, "cleared: the stored runs are the result"


def test_later_runs_execute_only_the_step_with_the_metric(world: World) -> None:
    world.check()
    world.search(lambda place: 1.2 if place >= 6 else 1.0)
    confs = [conf.get("only") for _, conf in world.started]
    assert confs == [None, *[["norm_train_cpu/train"]] * (len(confs) - 1)]


def test_all_steps_are_executed_for_a_failure(world: World) -> None:
    world.conf = {"metric": "failure"}
    world.check()
    world.search(lambda place: Status.FAILED if place >= 3 else 1.0)
    assert [conf for _, conf in world.started if "only" in conf] == []


def test_parallel_runs_are_awaited_before_the_next_ones(world: World) -> None:
    world.conf = {"parallel": 2}
    world.check()
    waits = world.go_on()
    assert world.places == [8, 8]
    world.end(waits, lambda place: 1.2)
    second = world.go_on(waits)
    assert isinstance(second, TaskDeferred)
    assert second.trigger.run_id.endswith("~2")
    assert len(world.started) == 2
    third = world.go_on(world.end(second, lambda place: 1.2))
    assert isinstance(third, TaskDeferred)
    assert world.places == [8, 8, 0, 0]


def test_log_names_the_runs_that_are_active_at_the_same_time(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.conf = {"parallel": 2}
    world.check()
    waits = world.go_on()
    world.end(waits, lambda place: 1.2)
    second = world.go_on(waits)
    capsys.readouterr()
    world.go_on(world.end(second, lambda place: 1.25))
    bad, good = world.commits[8][:8], world.commits[0][:8]
    log = capsys.readouterr().out
    positions = [
        log.index(words)
        for words in (f"  {bad}: 1.2 (", f"  {bad}: 1.25 (", f"run 3: {good} 'Change 0' (the good end)", "run 4: ")
    ]
    assert positions == sorted(positions)


def test_slower_build_is_found_and_a_broken_one_skipped(world: World) -> None:
    world.conf = {"builds": ["# nightly", *BUILDS], "suite_ref": "HEAD~1", "good": "", "bad": ""}
    assert [version for version, *_ in world.check()["builds"]] == [f"3.{number}" for number in range(COMMITS)]
    result = world.search(lambda place: Status.INFRA_FAILURE if place == 4 else 1.2 if place >= 6 else 1.0)
    assert world.places[:4] == [8, 8, 0, 0]
    assert world.places.count(4) == 2, "skipped after two failures"
    assert result["status"] == "pass"
    assert result["verdict"].startswith("100 %: 3.6 (")
    assert {conf["suite_ref"] for _, conf in world.started} == {world.commits[-2]}
    with world.store() as store:
        stored = store.documents.get(result["run"], BisectionDocument)
    assert stored is not None
    assert (stored.good, stored.bad, [each.id for each in stored.changes]) == ("3.0", "3.8", ["3.6"])
    assert world.go_on() == result, "cleared: the stored runs are the result"


def test_builds_continue_after_a_stop(world: World) -> None:
    world.conf = {"builds": BUILDS, "suite_ref": "HEAD", "good": "", "bad": "", "max_runs": 3}
    world.check()
    assert world.search(lambda place: 1.0 if place < 6 else 1.2)["status"] == "unconfirmed"
    world.conf |= {"max_runs": 0}
    assert world.search(lambda place: 1.0 if place < 6 else 1.2)["status"] == "pass"
    assert world.places[:4] == [8, 8, 0, 0], "no end is measured again"


def test_wheel_of_a_build_is_a_param_of_its_runs(world: World) -> None:
    wheel = "https://builds.example.org/paddlepaddle-3.9-cp311-cp311-linux_x86_64.whl"
    world.conf = {"builds": [BUILDS[0], f"{wheel} --hash=sha256:{'ab' * 32}"], "good": "", "bad": ""}
    world.check()
    assert isinstance(world.go_on(), TaskDeferred)
    ((_, conf),) = world.started
    assert (conf["framework_wheel"], conf["framework_sha256"]) == (wheel, "ab" * 32)
    assert not conf.keys() & {"framework", "suite_ref"}


def test_retried_task_starts_nothing_twice(world: World) -> None:
    world.check()
    waits, again = world.go_on(), world.go_on()
    assert isinstance(waits, TaskDeferred)
    assert isinstance(again, TaskDeferred)
    assert again.trigger.run_id == waits.trigger.run_id
    world.end(waits, lambda place: 1.2)
    # Its worker died before it resumed.
    assert isinstance(world.go_on(), TaskDeferred)
    assert world.places == [8, 8]


def test_commit_without_a_plan_is_skipped_and_named(world: World) -> None:
    world.check()
    result = world.search(lambda place: Status.CONFIG_ERROR if place == 4 else 1.2 if place >= 5 else 1.0)
    assert result["status"] == "pass"
    assert world.places.count(4) == 1
    assert "one of 2 commits: " in result["verdict"]


def test_limit_of_runs_ends_without_a_result(world: World) -> None:
    world.conf = {"max_runs": 3}
    world.check()
    result = world.search(lambda place: 1.2 if place >= 6 else 1.0)
    assert result["status"] == "unconfirmed"
    assert result["verdict"].startswith("undecided: the limit of 3 runs is reached (3 runs, ")
    with pytest.raises(AirflowFailException, match=r"^unconfirmed: undecided: the limit of 3 runs"):
        ResultVerdictOperator(task_id="verdict", of="search").execute(world.context())


def test_equal_ends_fail_the_task_and_are_the_result(world: World) -> None:
    with world.store() as store:
        record_run(store, a_run("bad-run", chain=CHAIN, suite="toy", cluster="local", environment="cpu"))
        store.measurements.add(losses("bad-run", [1.2], metric="batch_cost", unit="s"))
    world.conf = {"run": "bad-run"}
    world.check()
    with pytest.raises(
        AirflowFailException, match=r"^config_error: good, bad: batch_cost is not worse at the bad end"
    ):
        world.search(lambda place: 1.0)
    with world.store() as store:
        stored = store.documents.get("bad-run", BisectionDocument)
    assert stored is not None
    assert stored.sentence.startswith("undecided: ")


def test_two_broken_runs_in_a_row_fail_the_task(world: World) -> None:
    world.check()
    waits = world.go_on(world.end(world.go_on(), lambda place: Status.INFRA_FAILURE))
    with pytest.raises(AirflowFailException, match=r"^infra_failure: 2 runs in a row are infra_failure"):
        world.go_on(world.end(waits, lambda place: Status.INFRA_FAILURE))
    assert isinstance(world.go_on(), TaskDeferred), "cleared"


def test_run_of_another_chain_is_one_error_before_any_run(world: World) -> None:
    with world.store() as store:
        record_run(store, a_run("other-run", chain="toy/other/train", cluster="local"), status=Status.REGRESSION)
    world.conf = {"run": "other-run"}
    with pytest.raises(
        AirflowFailException, match=r"^config_error: run: run other-run has another chain than the"
    ):
        world.check()
    assert world.started == []


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"good": "none"}, "good: the suite has no such ref; found 'none'"),
        ({"good": "HEAD", "bad": "HEAD~2"}, "good: is not an earlier commit of the bad end"),
        ({"good": "HEAD", "bad": "HEAD"}, "good: is the same commit as the bad end"),
        ({"good": ""}, "good: not given"),
        ({"builds": BUILDS}, "builds: lists the good and the bad build"),
        ({"suite_ref": "HEAD"}, "suite_ref: is for --builds"),
        ({"good": "", "bad": "", "builds": BUILDS[:1]}, "builds: lists too few builds; found '1'"),
        ({"good": "", "bad": "", "builds": ["paddlepaddle>=3", *BUILDS]}, "builds:1: names no single version"),
        ({"good": "", "bad": "", "builds": [f"p==1.{n}" for n in range(1001)]}, "builds: lists too many builds"),
        (
            {"good": "", "bad": "", "builds": [*BUILDS, f"/tmp/p-9-py3-none-any.whl --hash=sha256:{'ab' * 32}"]},
            "builds: is not on the machine of Airflow; found '/tmp/p-9-py3-none-any.whl'",
        ),
        (
            {"good": "", "bad": "", "builds": BUILDS, "framework": "paddlepaddle==3.0"},
            "framework: is that of each run with `builds`",
        ),
        ({"good": "", "bad": "", "builds": BUILDS, "suite_ref": "none"}, "suite_ref: the suite has no such ref"),
        ({"metric": "seen"}, "metric: neither a lower nor a higher value of this metric is better"),
        ({"metric": ""}, "metric: invalid value; found"),
        ({"params_file": "toy/none.txt"}, "params_file: suite toy has no such params file at HEAD~8 (good)"),
        ({"run": "nothing"}, "nothing"),
        ({"cluster": "none"}, "none"),
        ({"confidence": 2.0}, "confidence"),
        ({"colour": "red"}, "colour: unknown param"),
    ],
)
def test_invalid_param_is_one_error_before_any_run(world: World, params: dict[str, Any], words: str) -> None:
    world.conf = params
    with pytest.raises(AirflowFailException, match=r"^config_error: ") as error:
        world.check()
    assert words in str(error.value)
    assert world.started == []
