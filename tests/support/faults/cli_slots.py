"""Several controllers request the same nodes, and one of them is killed."""

import time
from typing import Any

import yaml
from tests.support.certify import Site
from tests.support.faults.case import Case
from tests.support.faults.gate import Gate
from tests.support.faults.running import Running

from tipcflow.domain import Status
from tipcflow.execute.sweeps.maintenance import DAY_S, Upkeep
from tipcflow.execute.sweeps.runs import runs_without_status
from tipcflow.transport.connect import connect

HOLDERS = ("ab", "cd")
WAITERS = (("bc", "weekly"), ("ad", "weekly"), ("ac", "weekly"), ("bc", "cli"), ("ad", "cli"))
WAITERS += (("ac", "ci"), ("ad", "ci"), ("bd", "ci"))


def two_controllers(case: Case) -> None:
    """Their databases know nothing of each other: the node decides."""
    other = Site(case.folder / "other", case.nodes)
    gate = Gate(other, case.folder)
    first = Running(other)
    case.stack.callback(first.kill)
    gate.wait(first)
    running = case.start()
    case.waits_for_slots(running)
    case.now()
    printed = case.printed(running)
    assert f"run {first.id} has no lease in this database" in printed, printed
    gate.open()
    assert first.end() == 0, first.output
    case.end(running)
    with case.site.store() as ours, other.store() as theirs:
        assert theirs.leases.all() == []
        ended = max(one.ended_at or 0.0 for one in theirs.attempts.of(first.id))
        began = min(one.started_at for one in ours.attempts.of(running.id))
    assert ended <= began, "two controllers' runs were on one node at the same time"


def controller_gone(case: Case) -> None:
    """The nodes end the job on their own. `nodes reap` judges a run of the CLI and frees its slots;
    for a DAG run maintenance does so a day later."""
    case.site.configure_policy(waits={"lease_ttl_s": 5, "node_lease_s": case.node_lease_s})
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    printed = running.output
    case.kill_controller(running)
    case.wait_for(lambda: not any(case.nodes.processes(name) for name in "ab"), "the nodes' own end of the job")
    result = case.reap()
    if case.lease_expires:
        assert f"run {running.id}: infra_failure" in result, result
        with case.site.store() as store:
            assert store.leases.all() == []
            case.run = store.runs.get(running.id)
        case.text = f"{printed}\n{result}"
        return
    assert "was dropped" not in result, result
    with case.site.store() as store:
        upkeep = Upkeep(store, case.site.home, case.site.configs, connect, print, now=time.time() + DAY_S)
        assert "1 got one" in runs_without_status(upkeep)
        case.run = store.runs.get(running.id)
    case.text = f"{printed}\n{result}"


def ten_runs(case: Case) -> None:
    """Two runs hold all four nodes; eight wait for pairs of them, with three priorities."""
    case.nodes_of_its_own(names=tuple("abcd"))
    pairs = {*HOLDERS, *(pair for pair, _ in WAITERS)}
    for pair in pairs:
        _write_pair(case, pair)
    case.offer_clusters(pairs)
    gate = case.gate()
    runs = [case.start(cluster=pair) for pair in HOLDERS]
    for running in runs:
        gate.wait(running, ranks=8, seconds=180)
    for pair, trigger in WAITERS:
        runs.append(case.start(cluster=pair, trigger=trigger))
    for running in runs[len(HOLDERS) :]:
        case.waits_for_slots(running)
    case.now()
    gate.open()
    for running in runs:
        case.end(running, seconds=240)
        assert case.run is not None
        assert case.run.status is Status.PASS, running.output
    _in_order(case.site, runs)


def _write_pair(case: Case, pair: str) -> None:
    content = yaml.safe_load(case.site.cluster_file.read_text())
    chosen = [node for node in content["nodes"] if node["name"] in pair]
    path = case.site.cluster_file.with_name(f"{pair}.yaml")
    case.stack.callback(path.unlink)
    path.write_text(yaml.safe_dump({**content, "name": pair, "nodes": chosen}))


def _in_order(site: Site, runs: list[Any]) -> None:
    """No two runs shared a node, and the run with the higher priority went first."""
    order = {"ci": 0, "cli": 1, "weekly": 2}
    spans = []
    with site.store() as store:
        for number, running in enumerate(runs):
            run, tried = store.runs.get(running.id), store.attempts.of(running.id)
            began, ended = min(one.started_at for one in tried), max(one.ended_at or 0 for one in tried)
            spans.append((set(run.nodes), order.get(run.trigger, 1), began, ended, number >= len(HOLDERS)))
    for nodes, priority, began, ended, waited in spans:
        for others, lower, later, _, also_waited in spans:
            if nodes & others and began < later:
                assert ended <= later, "two runs were on one node at the same time"
            if nodes & others and waited and also_waited and priority < lower:
                assert began < later, "a lower priority went first"
