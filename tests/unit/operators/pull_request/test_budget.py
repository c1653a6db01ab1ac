"""The budget of a repository: which chains of a pull request run, and how its report lists the rest."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from tests.support.certify import ROOT
from tests.support.github.api import GitHub, serving
from tests.support.github.world import CHAIN, PARAMS, World, git
from tests.support.stories import a_record

from tipcflow.config.cluster import load_cluster
from tipcflow.config.suite import load_suite
from tipcflow.domain import Plan, Run, Status, dag_id_of
from tipcflow.execute.changes.fitted import predictions
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.source.snapshot import take_snapshot
from tipcflow.store import Store
from tipcflow_operators.tasks.request import RUN_PARAMS, read_conf, request_of

pytestmark = pytest.mark.slow

OTHER = "toy/toy/train_other"
MINUTE = 60.0
NODES = [
    {
        "name": name,
        "address": f"192.0.2.{number}",
        "ssh": {"alias": name},
        "connection": name,
        "device": "cpu",
        "slots": 2,
        "python": "/usr/bin/python3",
        "workspace": "/var/lib/tipcflow",
    }
    for number, name in enumerate(("one", "two"), start=1)
]


@pytest.fixture
def worlds(tmp_path: Path, github: GitHub) -> Iterator[Any]:
    with serving(github) as url, Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:

        def make(**budget: Any) -> World:
            world = World(tmp_path, url, github, store, budget=budget)
            cluster = {"name": "local", "nodes": NODES}
            (world.configs / "clusters" / "local.yaml").write_text(yaml.safe_dump(cluster))
            return world

        yield make


RUN = SimpleNamespace(dag_id="toy", run_id="github__1", run_type="operator_triggered")


def planned(world: World, conf: dict[str, Any] | None = None, params: str = PARAMS) -> Plan:
    """The plan that the DAG run with this conf makes."""
    conf = conf or {"mode": "lite_train_lite_infer", "cluster": "local"}
    checked = read_conf(conf, allowed=RUN_PARAMS)
    request = request_of(checked, suite="toy", params_file=params, dag_run=RUN)
    return plan_of(world, request)


def plan_of(world: World, request: RunRequest) -> Plan:
    suite = load_suite("toy", world.configs)
    cluster = load_cluster("local", world.configs)
    snapshot = take_snapshot(suite, request.params, request.suite_ref, cache=world.folder / "cache")
    return make_plan(request, suite, cluster, snapshot, run="r")


def past(world: World, minutes: float = 1.0, leg_minutes: float = 2.0, chain: str = CHAIN) -> None:
    """Five accepted runs of the chain."""
    plan = planned(world).model_copy(update={"chain": chain})
    for number in range(5):
        run = f"past{chain[-5:]}{number}"
        fields = {"id": run, "chain": chain, "suite": "toy", "model": "toy", "mode": plan.mode}
        world.store.runs.create(Run.model_validate({**fields, "cluster": "local", "created_at": 0.0}), plan)
        for step in plan.steps:
            legs = [leg for leg in step.legs if not leg.not_run]
            took = minutes * MINUTE + leg_minutes * MINUTE * len(legs)
            attempt = world.store.attempts.open(run, step.id, step.nodes, 1000.0)
            for leg in legs:
                times = {"started_at": 1000.0, "ended_at": 1000.0 + leg_minutes * MINUTE}
                record = a_record(run, step.id, "one", leg=leg.id, attempt=attempt, **times)
                world.store.steps.set_leg(run, step.id, leg.id, attempt, Status.PASS, "", record)
            world.store.attempts.close(run, step.id, attempt, Status.PASS, "", (), 1000.0 + took)
        world.store.runs.finish(run, Status.PASS, "", 9999.0)


def opened(world: World) -> None:
    world.pull_request("opened")
    world.settle()


def test_without_history_everything_runs(worlds: Any) -> None:
    """Legs that never run would never have a history."""
    world = worlds(minutes_per_chain=15)
    opened(world)
    (conf,) = world.dag_runs.started.values()
    assert "drop" not in conf
    assert "Not proven" not in world.check()["output"]["summary"]
    assert "| predicted 15.0 |" in world.check()["output"]["summary"]


def test_a_long_chain_runs_without_its_least_valuable_leg(worlds: Any) -> None:
    world = worlds(minutes_per_chain=7, minutes=20, drop=["*onednn_True*"])
    past(world)
    opened(world)
    (conf,) = world.dag_runs.started.values()
    (dropped,) = conf["drop"]
    assert "onednn_True" in dropped
    legs = {f"{step.id}/{leg.id}": leg.not_run for step in planned(world, conf).steps for leg in step.legs}
    cpu = {name: why for name, why in legs.items() if "/cpu_" in name}
    assert {name for name, why in cpu.items() if why} == {dropped}
    assert len(cpu) == 2
    world.end()
    run = world.run_of()
    world.store.plans.replace(run, planned(world, conf))
    attempt = world.store.attempts.open(run, "prepare", ("one",), 100.0)
    world.store.attempts.close(run, "prepare", attempt, Status.PASS, "", (), 490.0)
    world.settle()
    output = world.check()["output"]
    assert world.check()["conclusion"] == "success"
    assert output["title"] == "1 pass; 1 dropped by the budget"
    assert f"leg {dropped} of {CHAIN} does not run: the chain takes more than 7.0 min" in output["summary"]
    assert "| 6.5, predicted 7.0 |" in output["summary"]
    assert f"--drop {shlex.quote(dropped)}" in output["summary"]
    (comment,) = world.github.comments
    assert "Not proven" in comment["body"]
    (prediction,) = world.store.pulls.predictions(CHAIN)
    assert (prediction.run, prediction.predicted_s) == (run, 7 * MINUTE)
    assert world.store.pulls.predictions(OTHER) == []
    (shown,) = predictions(world.store, CHAIN)
    assert shown == {"run": run, "status": "pass", "predicted_s": 420.0, "took_s": 390.0}


def test_the_least_valuable_chain_is_dropped(worlds: Any) -> None:
    world = worlds(minutes_per_chain=9, minutes=10, nodes=2, reserve_minutes=1, keep=["*/train_other"])
    other = world.configs / "chains" / "toy" / "toy" / "train_other.txt"
    other.write_text((ROOT / "tests" / "support" / "toy_suite" / PARAMS).read_text())
    world.push(PARAMS.replace("train_infer_python", "train_other"), text=other.read_text())
    past(world)
    past(world, chain=OTHER)
    world.github.files = [{"filename": "train.py"}]
    opened(world)
    assert [dag for dag, _ in world.dag_runs.started] == [dag_id_of(OTHER)]
    summary = world.check()["output"]["summary"]
    assert f"chain {CHAIN} does not run: all chains take more than 9.0 min on 2 nodes" in summary


def test_no_chain_fits(worlds: Any) -> None:
    world = worlds(minutes_per_chain=2, minutes=60)
    past(world)
    world.pull_request("opened")
    world.settle()
    assert world.dag_runs.started == {}
    assert world.check()["conclusion"] == "action_required"
    assert world.check()["output"]["title"] == "no chain ran: nothing is proven"
    assert "it takes 7.0 min at least, the limit is 2.0 min" in world.check()["output"]["summary"]
    assert world.store.pulls.living() == []


def test_a_whole_run_has_no_budget(worlds: Any) -> None:
    world = worlds(minutes_per_chain=2, minutes=60)
    past(world)
    world.comment("/tipc run whole")
    world.settle()
    (conf,) = world.dag_runs.started.values()
    assert conf["mode"] == "whole_train_whole_infer"
    assert git(world.suite, "rev-parse", "HEAD") == conf["suite_ref"]


def test_a_chain_without_a_plan_runs_and_reports_why(worlds: Any) -> None:
    world = worlds(minutes_per_chain=2, minutes=60, unknown_minutes=1)
    world.push(PARAMS, text="nothing\n")
    opened(world)
    assert [dag for dag, _ in world.dag_runs.started] == [dag_id_of(CHAIN)]
