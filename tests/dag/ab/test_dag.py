"""The tasks of the DAG `ab` with a real database and a real git repository; only Airflow's responses are fake."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization
from tests.support.airflow.world import AFTER, DagWorld
from tests.support.stories import a_run, losses, record_run

from tipcflow.domain import ConfigError, Status, run_id_of
from tipcflow.domain.run_documents import AbDocument
from tipcflow_operators.ab.check import CheckOperator
from tipcflow_operators.ab.compare import CompareOperator
from tipcflow_operators.ab.dag import ab_dag
from tipcflow_operators.ab.request import AB_PARAMS
from tipcflow_operators.chain.params import allowed
from tipcflow_operators.tasks.phases import ResolveOperator
from tipcflow_operators.tasks.result_verdict import ResultVerdictOperator

Value = Callable[[str], float | Status]


class World(DagWorld):
    """A DAG run of `ab`; the DAG runs that it starts end when they are waited for."""

    dag_id, parent = "ab", "manual__2026-11-24T00:00:00+00:00"

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(home, monkeypatch, ("first", "second"))
        self.params |= {"a": "HEAD~1", "b": "HEAD"}

    def commit(self, ref: str) -> str:
        return self.git("rev-parse", ref)

    def check(self) -> None:
        self.xcom["check"] = CheckOperator(task_id="check").execute(self.context())

    def go_on(self, deferred: TaskDeferred | None = None) -> TaskDeferred | dict[str, str]:
        """Execute the task, or resume it when its run has ended; return what it waits for next."""
        compare = CompareOperator(task_id="compare")
        try:
            if deferred is None:
                return compare.execute(self.context())
            event = {"run_id": deferred.trigger.run_id, "state": self.states.get(deferred.trigger.run_id)}
            return compare.resume(self.context(), event, **(deferred.kwargs or {}))
        except TaskDeferred as waits:
            return waits

    def end(self, waits: TaskDeferred | dict[str, str], value: float | Status | None) -> TaskDeferred:
        """End the run that the task waits for: with a batch_cost, a status without one, or without a status."""
        assert isinstance(waits, TaskDeferred)
        child = waits.trigger.run_id
        conf = dict(self.started)[child]
        ours = run_id_of("certify", child, AFTER)
        number = len(self.started)
        fields = {"created_at": 100.0 * number, "trigger": "ab", "suite_commit": conf["suite_ref"]}
        self.states[child] = "success"
        with self.store() as store:
            if value is None or isinstance(value, Status):
                store.runs.create(a_run(ours, **fields))
                if value is not None:
                    store.runs.finish(ours, value, f"it is {value.value}", 100.0 * number + 60)
            else:
                record_run(store, a_run(ours, **fields))
                store.measurements.add(losses(ours, [value], metric="batch_cost", unit="s"))
        return waits

    def compare(self, value: Value) -> dict[str, str]:
        """Run the task to its end; `value` of a side is its batch_cost or status."""
        waits = self.go_on()
        while isinstance(waits, TaskDeferred):
            side = "A" if self.started[-1][1]["suite_ref"] == self.commit("HEAD~1") else "B"
            waits = self.go_on(self.end(waits, value(side)))
        self.xcom["compare"] = waits
        return waits

    def verdict(self) -> str:
        return ResultVerdictOperator(task_id="verdict", of="compare").execute(self.context())

    @property
    def sides(self) -> str:
        """The sides of the started runs."""
        commits = {self.commit("HEAD~1"): "A", self.commit("HEAD"): "B"}
        return "".join(commits[conf["suite_ref"]] for _, conf in self.started)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_the_dag_is_one_that_airflow_can_keep(world: World) -> None:
    dag = ab_dag()
    assert dag.task_ids == ["check", "compare", "verdict"]
    assert sorted(dag.params) == sorted(AB_PARAMS)
    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == "ab"
    for name in AB_PARAMS:
        dag.params.get_param(name).resolve()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"a": "HEAD"}, "a, b, framework_a, framework_b: A and B are the same version"),
        ({"b": "nothing"}, "b: .*'nothing'"),
        ({"max_pairs": 3}, "max_pairs: is too small for an error of 0.02; found '3'; expected at least 4"),
        ({"metric": ["data_num"]}, "metric: neither a lower nor a higher value"),
        ({"cluster": "locla"}, "unknown cluster; found 'locla'"),
        ({"policy": "monthly"}, "unknown policy; found 'monthly'"),
        ({"params_file": "toy/nothing.txt"}, r"params_file: suite toy has no such params file at HEAD~1 \(a\)"),
        ({"marign": 1}, "marign: unknown param"),
    ],
)
def test_wrong_param_is_reported_before_a_run_starts(world: World, wrong: dict[str, Any], words: str) -> None:
    world.conf = wrong
    with pytest.raises(AirflowFailException, match=f"(?s)^config_error: .*{words}"):
        world.check()
    assert world.started == []


def test_pairs_alternate_on_the_same_nodes_until_b_is_worse(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.conf = {"seed": 7, "metric": ["batch_cost"], "pairs": 4}
    world.check()
    noise = iter([1.0, 1.001, 0.999, 1.0, 1.002] * 4)
    result = world.compare(lambda side: (1.2 if side == "B" else 1.0) * next(noise))
    assert world.sides == "ABBAABBAAB"
    first = run_id_of("certify", f"ab__{World.parent}", AFTER)
    assert world.started[0] == (
        f"ab__{World.parent}",
        {
            **{name: world.params[name] for name in ("suite", "params_file", "mode", "cluster", "policy")},
            "seed": 7,
            "suite_ref": world.commit("HEAD~1"),
            "lease_to": run_id_of("certify", f"ab__{World.parent}~2", AFTER),
        },
    )
    leased = [run_id_of("certify", f"ab__{World.parent}~{number}", AFTER) for number in (2, 4, 6, 8, 10)]
    assert [conf.get("lease_to") for _, conf in world.started[::2]] == leased, "the second run of each pair"
    assert {conf.get("lease_to") for _, conf in world.started[1::2]} == {None}
    assert [conf.get("nodes_of") for _, conf in world.started] == [None, *[first] * 9]
    assert (result["run"], result["status"]) == (first, "regression")
    assert result["verdict"].startswith("worse: 1 of 1 metrics; 4 pairs are done (4 pairs and 1 warm-up pair")
    printed = capsys.readouterr().out
    assert "warm-up pair (A, B): " in printed
    assert "pair 4 (A, B): " in printed
    assert "METRIC            A" in printed
    with pytest.raises(AirflowFailException, match=r"^regression: worse: 1 of 1 metrics"):
        world.verdict()
    with world.store() as store:
        stored = store.documents.get(first, AbDocument)
    assert stored is not None
    assert (stored.root["status"], stored.root["metrics"][0]["outcome"]) == ("regression", "worse")
    assert len(stored.root["pairs"]) == 5


def test_equal_versions_pass_and_an_undecided_comparison_does_not(world: World) -> None:
    world.conf = {"metric": ["batch_cost"], "pairs": 4}
    world.check()
    assert world.compare(lambda side: 1.0)["status"] == "pass"
    assert world.verdict().startswith("same within 2.0 %: 1 of 1 metrics")
    # Cleared: the result is computed again, and nothing is started.
    assert isinstance(world.go_on(), dict)
    assert len(world.started) == 10
    world.xcom["compare"] = {"run": "", "status": "unconfirmed", "verdict": "undecided: 1 of 1 metrics"}
    with pytest.raises(AirflowFailException, match=r"^unconfirmed: undecided: 1 of 1 metrics$"):
        world.verdict()


def test_run_that_got_the_leases_is_started(world: World) -> None:
    world.check()
    waits = world.end(world.go_on(), 1.0)
    with world.store() as store:
        store.runs.create(a_run(run_id_of("certify", f"ab__{World.parent}~2", AFTER), trigger="ab"))
    second = world.go_on(waits)
    assert isinstance(second, TaskDeferred)
    assert [run_id for run_id, _ in world.started] == [f"ab__{World.parent}", f"ab__{World.parent}~2"]
    assert second.trigger.run_id == f"ab__{World.parent}~2"


def test_a_retried_task_starts_nothing_twice(world: World) -> None:
    world.check()
    waits = world.go_on()
    again = world.go_on()
    assert isinstance(again, TaskDeferred)
    assert isinstance(waits, TaskDeferred)
    assert again.trigger.run_id == waits.trigger.run_id == f"ab__{World.parent}"
    world.end(waits, 1.0)
    # Its worker died before it resumed.
    second = world.go_on()
    assert isinstance(second, TaskDeferred)
    assert second.trigger.run_id == f"ab__{World.parent}~2"
    assert world.sides == "AB"


def test_failure_of_side_b_ends_the_comparison(world: World) -> None:
    world.check()
    result = world.compare(lambda side: Status.FAILED if side == "B" else 1.0)
    assert result["status"] == "failed"
    assert world.sides == "AB"
    with pytest.raises(AirflowFailException, match=r"^failed: worse: run .* of B is failed: it is failed"):
        world.verdict()


@pytest.mark.parametrize("broken", [Status.INFRA_FAILURE, None])
def test_broken_pair_is_repeated_and_two_in_a_row_fail_the_task(world: World, broken: Status | None) -> None:
    world.check()
    waits = world.go_on(world.end(world.go_on(), broken))
    assert (world.sides, dict(world.started[-1][1]).get("nodes_of")) == ("AA", None)
    with pytest.raises(AirflowFailException, match=r"^infra_failure: 2 pairs in a row had an infra_failure"):
        world.go_on(world.end(waits, broken))
    assert isinstance(world.go_on(), TaskDeferred), "cleared"
    assert world.sides == "AAA"


def test_stopped_run_ends_the_task_until_cleared(world: World) -> None:
    world.conf = {"metric": ["batch_cost"]}
    world.check()
    waits = world.go_on(world.end(world.go_on(), 1.0))
    result = world.go_on(world.end(waits, Status.CANCELLED))
    assert isinstance(result, dict)
    assert (result["status"], result["verdict"].partition(" (")[0]) == (
        "unconfirmed",
        "undecided: stopped by a user",
    )
    assert isinstance(world.go_on(), TaskDeferred), "cleared"
    assert world.sides == "ABA"


def test_a_run_that_does_not_end_is_named(world: World) -> None:
    world.check()
    waits = world.go_on()
    assert isinstance(waits, TaskDeferred)
    world.states[waits.trigger.run_id] = "late"
    with pytest.raises(AirflowFailException, match=r"^infra_failure: DAG run ab__.* did not end within 2 days"):
        world.go_on(waits)


def test_pairs_of_another_commit_are_not_mixed(world: World) -> None:
    world.check()
    world.end(world.go_on(), 1.0)
    world.xcom["check"]["A"]["commit"] = "0" * 40
    with pytest.raises(AirflowFailException, match=r"^config_error: a: the ref has moved since run"):
        world.go_on()
    assert world.sides == "A"


def test_nodes_of_a_run_that_does_not_exist_are_refused(world: World) -> None:
    resolve = ResolveOperator(task_id="resolve", suite="", params_file="", allowed=allowed(chain=False))
    given = {name: world.params[name] for name in ("suite", "params_file", "mode", "cluster", "policy")}
    with world.store() as store:
        ctx: Any = SimpleNamespace(store=store)
        assert resolve.read_request(ctx, world.context(), given).nodes_of == ""
        with pytest.raises(ConfigError, match=r"^nodes_of: no such run in the metrics database.*found 'nothing'"):
            resolve.read_request(ctx, world.context(), {**given, "nodes_of": "nothing"})
