"""Chains as DAGs in a real Airflow on real nodes; what counts is the metrics database, not the log."""

from pathlib import Path

import httpx
import pytest
from tests.support.framework.wheels import make_wheel
from tests.support.scheduler import Scheduler

from tipcflow.airflow_api import RunState
from tipcflow.domain import Status, TipcflowError
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow_operators.airflow.api import CONNECTION

pytestmark = pytest.mark.e2e
VARIANT = "norm_train_gpus_0,1_autocast_null_nodes_2"
SLOW = "norm_train:train.py --step-time 3"


def test_chain_passes_and_every_task_has_a_log(scheduler: Scheduler) -> None:
    dag_run, run = scheduler.certify(seed=7)
    assert run.status is Status.PASS, run.reason
    assert dag_run.state is RunState.SUCCESS
    assert (run.trigger, run.seed, run.mode) == ("test", 7, "lite_train_lite_infer")
    with scheduler.site.store() as store:
        losses = store.measurements.of(run.id, metric="loss")
        steps = store.steps.statuses(run.id)
        assert store.documents.get(run.id, AirflowDocument) == AirflowDocument(
            dag_id=dag_run.dag_id, run_id=dag_run.run_id
        )
    assert {(m.node, m.rank) for m in losses} == {("a", 0), ("a", 1), ("b", 2), ("b", 3)}
    assert len(losses) == 40
    assert steps[f"{VARIANT}/infer_gpu"][0] is Status.NOT_RUN
    states = scheduler.states(dag_run)
    assert states.pop("infer_gpu") == "skipped"
    assert set(states.values()) == {"success"}
    assert {"prepare[a]", "prepare[b]", "train[a]", "train[b]"} <= set(states)
    assert "prepared with" in scheduler.log(dag_run, "prepare", map_index=1)
    assert "pass" in scheduler.log(dag_run, "verdict")


NEEDS = """#!/bin/sh
set -eu
python -c 'import toyneed, helper_of_suite; print("package", toyneed.word, helper_of_suite.word)'
echo "flag $TOY_FLAG, place $TOY_PLACE, data $(cat dataset/val.txt)"
mkdir -p images
for i in 0 1 2; do echo "$i" > "images/$i.png"; done
"""


@pytest.mark.full
def test_needs_of_a_suite_are_met_on_every_node(scheduler: Scheduler, tmp_path: Path) -> None:
    site = scheduler.site
    prepare = site.suite / "test_tipc" / "prepare.sh"
    changed = [prepare, site.suite_file, site.cluster_file]
    kept = {path: path.read_bytes() for path in changed}
    wheel = make_wheel(tmp_path, "toyneed", text="installed")
    (tmp_path / "val.txt").write_text("one image")
    helper = site.suite / "deploy" / "helper_of_suite.py"
    helper.write_text("word = 'imported'")
    try:
        prepare.write_text(NEEDS)
        for node in site.nodes.cluster.nodes:
            pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheel.parent)}
            site.configure_node(node.name, env={**node.env, **pip}, cache=str(tmp_path / f"cache-{node.name}"))
        site.configure_suite(
            env={"TOY_FLAG": 7, "TOY_PLACE": "{root}/dataset"},
            pythonpath=["deploy"],
            packages=["toyneed==1.0"],
            data=[{"to": "dataset", "path": str(tmp_path / "val.txt"), "link": "copy"}],
        )
        # A mode of its own: the steps that only this run has are not missing in later runs of the chain.
        dag_run, run = scheduler.certify(mode="lite_train_whole_infer")
    finally:
        helper.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
    assert run.status is Status.PASS, run.reason
    with site.store() as store:
        steps = store.steps.statuses(run.id)
    assert (steps["environment"][0], steps["data"][0]) == (Status.PASS, Status.PASS)
    for index in range(2):
        log = scheduler.log(dag_run, "prepare", map_index=index)
        assert "package installed imported" in log
        assert f"flag 7, place {site.nodes.cluster.nodes[index].workspace}/runs/{run.id}/src/dataset" in log
        assert "data one image" in log


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"sead": 1}, "sead: unknown param; expected one of mode, suite_ref, base, framework"),
        ({"suite_ref": "v99"}, "--suite-ref"),
    ],
)
def test_a_wrong_request_is_a_config_error_and_starts_nothing(
    scheduler: Scheduler, conf: dict[str, object], words: str
) -> None:
    dag_run, run = scheduler.certify(**conf)
    assert run.status is Status.CONFIG_ERROR
    assert words in run.reason
    assert dag_run.state is RunState.FAILED
    with scheduler.site.store() as store:
        assert store.attempts.of(run.id) == []


@pytest.mark.parametrize("word", ["confirm", "weekly"])
def test_a_reserved_trigger_is_a_config_error_and_starts_nothing(scheduler: Scheduler, word: str) -> None:
    dag_run = scheduler.ended(scheduler.start(trigger=word))
    run = scheduler.run_of(dag_run)
    assert (run.status, run.trigger) == (Status.CONFIG_ERROR, "airflow")
    assert f"{word}__ is reserved for DAG runs that tasks of tipcflow start" in run.reason
    with scheduler.site.store() as store:
        assert store.attempts.of(run.id) == []


@pytest.mark.full
@pytest.mark.parametrize("conf", [{"cluster": "nowhere"}, {"framework": "paddle == banana"}, {"seed": -1}])
def test_form_refuses_invalid_params_before_a_run_is_created(
    scheduler: Scheduler, conf: dict[str, object]
) -> None:
    with scheduler.site.store() as store:
        before = store.runs.newest()
    with pytest.raises(TipcflowError, match=str(next(iter(conf.values())))):
        scheduler.start(**conf)
    with scheduler.site.store() as store:
        assert store.runs.newest() == before


def test_a_training_that_fails_makes_the_run_red(scheduler: Scheduler) -> None:
    scheduler.site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    dag_run, run = scheduler.certify()
    assert run.status is Status.FAILED
    assert "the data is broken" in run.reason
    assert "node b" in run.reason
    assert dag_run.state is RunState.FAILED
    states = scheduler.states(dag_run)
    assert states["train[b]"] == "failed"
    assert states["eval"] == "skipped"
    assert {states[name] for name in ("collect", "release", "judge")} == {"success"}
    assert "failed" in scheduler.log(dag_run, "verdict")
    with scheduler.site.store() as store:
        assert store.steps.statuses(run.id)[f"{VARIANT}/export"][0] is Status.BLOCKED


@pytest.mark.full
def test_a_node_that_is_down_is_not_a_model_failure(scheduler: Scheduler) -> None:
    scheduler.site.nodes.kill_sshd("b")
    try:
        dag_run, run = scheduler.certify()
    finally:
        scheduler.site.nodes.start_sshd("b")
    assert run.status is Status.INFRA_FAILURE
    assert "node b" in run.reason
    assert dag_run.state is RunState.FAILED


@pytest.mark.parametrize(
    "when", [pytest.param("watched by a worker", marks=pytest.mark.full), "watched by the triggerer"]
)
def test_marked_failed_in_the_middle_leaves_nothing_and_is_judged(scheduler: Scheduler, when: str) -> None:
    scheduler.site.edit_params("norm_train:train.py", SLOW)
    dag_run = scheduler.start()
    scheduler.until(dag_run, lambda: scheduler.site.training_runs_on("b"), "the training")
    if when == "watched by the triggerer":
        scheduler.until(
            dag_run,
            lambda: {scheduler.states(dag_run)[f"train[{node}]"] for node in "ab"} == {"deferred"},
            "the deferral",
        )
    from tests.support.certify import wait_for

    who = "a user"
    if when == "watched by the triggerer":
        address, stack = httpx.URL(scheduler.stack.url), scheduler.stack
        rest = {"conn_type": "http", "host": address.host, "port": address.port, "login": stack.user}
        scheduler.connect({CONNECTION: {**rest, "password": stack.password, "extra": {}}})
        who = f"user {stack.user}"
    try:
        scheduler.api.set_state(dag_run.dag_id, dag_run.run_id, "failed")
        scheduler.ended(dag_run)
        wait_for(lambda: scheduler.run_of(dag_run).status is not None, what="the verdict", seconds=90)
    finally:
        scheduler.api.remove_connection(CONNECTION)
    run = scheduler.run_of(dag_run)
    assert run.status is Status.CANCELLED, run.reason
    assert run.reason.startswith(f"stopped by {who} in {VARIANT}/")
    assert not scheduler.site.training_runs_on("a")
    assert not scheduler.site.training_runs_on("b")


@pytest.mark.full
@pytest.mark.parametrize("after", ["collect", "release"])
def test_a_mark_after_the_last_step_keeps_the_verdict(scheduler: Scheduler, after: str) -> None:
    from tests.support.certify import wait_for

    dag_run = scheduler.start("toy.toy.third")

    def is_collected() -> bool:
        states = scheduler.states(dag_run)
        if states.get("resolve") != "success":
            return False
        with scheduler.site.store() as store:
            steps = store.plans.get(dag_run.run).steps
            ended = len(store.steps.statuses(dag_run.run)) == len(steps)
        return ended and (after == "collect" or states["release"] == "success")

    scheduler.until(dag_run, is_collected, "the end of the last step")
    scheduler.api.set_state(dag_run.dag_id, dag_run.run_id, "failed")
    scheduler.ended(dag_run)
    wait_for(lambda: scheduler.run_of(dag_run).status is not None, what="the verdict", seconds=90)
    run = scheduler.run_of(dag_run)
    assert run.status is Status.PASS, run.reason
    facts = scheduler.site.facts(run)
    assert {one["check"] for one in facts["checks"]} >= {"ran.steps", "ran.evidence", "loss.finite"}


@pytest.mark.full
def test_a_run_waits_for_the_slots_of_another(scheduler: Scheduler) -> None:
    scheduler.site.edit_params("norm_train:train.py", SLOW)
    first = scheduler.start()
    scheduler.until(first, lambda: scheduler.site.training_runs_on("b"), "the first training")
    second = scheduler.start("toy.toy.second")
    scheduler.until(second, lambda: scheduler.states(second)["acquire"] == "deferred", "the second to wait")
    scheduler.ended(first)
    # Slower than the runs of this chain that other tests have made.
    assert scheduler.run_of(first).status in (Status.PASS, Status.REGRESSION)
    assert scheduler.ended(second).state is RunState.SUCCESS
    assert scheduler.run_of(second).status is Status.PASS


@pytest.mark.full
def test_a_waiting_run_that_is_marked_as_failed_is_cancelled(scheduler: Scheduler) -> None:
    from tests.support.certify import wait_for

    scheduler.site.edit_params("norm_train:train.py", SLOW)
    first = scheduler.start()
    scheduler.until(first, lambda: scheduler.site.training_runs_on("b"), "the first training")
    second = scheduler.start("toy.toy.second")
    scheduler.until(second, lambda: scheduler.states(second)["acquire"] == "deferred", "the second to wait")
    for dag_run in (second, first):
        scheduler.api.set_state(dag_run.dag_id, dag_run.run_id, "failed")
    for dag_run in (second, first):
        scheduler.ended(dag_run)
        wait_for(lambda run=dag_run: scheduler.run_of(run).status is not None, what="the verdict", seconds=90)
    run = scheduler.run_of(second)
    assert run.status is Status.CANCELLED, run.reason


def test_a_cleared_step_is_tried_again_and_the_run_judged_again(scheduler: Scheduler) -> None:
    dag_run, run = scheduler.certify()
    task = next(one.task_id for one in scheduler.tasks(dag_run) if one.task_id.endswith(".infer_cpu"))
    scheduler.clear(dag_run, task)
    assert scheduler.ended(dag_run).state is RunState.SUCCESS
    with scheduler.site.store() as store:
        tried = [one.attempt for one in store.attempts.of(run.id) if one.step == f"{VARIANT}/infer_cpu"]
    assert tried == [1, 2]
    assert scheduler.run_of(dag_run).status is Status.PASS


def test_a_chain_without_a_dag_is_certified_too(scheduler: Scheduler) -> None:
    dag_run, run = scheduler.certify("certify", suite="toy", params_file="toy/train_infer_python.txt")
    assert run.status is Status.PASS, run.reason
    assert run.chain == "toy/toy/train_infer_python"
    assert dag_run.state is RunState.SUCCESS
