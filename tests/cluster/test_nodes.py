"""Waiting for slots, `tipcflow nodes` and `tipcflow nodes reap` on real nodes."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import DEADLINE_S, TIPCFLOW, Site, wait_for
from tests.support.installed.operations_page import blocks, inline, shell

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.execute.sweeps.leftovers import leftovers
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.cluster
HANG = ("norm_train:train.py", "norm_train:train.py --inject hang@3")


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    return Site(tmp_path, nodes)


@pytest.fixture
def started(site: Site) -> Iterator["list[subprocess.Popen[str]]"]:
    made: list[subprocess.Popen[str]] = []
    yield made
    for process in made:
        process.kill()
        process.wait()


def start(site: Site, *extra: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        site.command(*extra), env=site.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def nodes_command(site: Site, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [str(TIPCFLOW), "nodes", *words]
    return subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def test_waiting_run_leaves_the_queue_with_a_reason_and_leftovers_are_reaped(
    site: Site, started: "list[subprocess.Popen[str]]"
) -> None:
    site.edit_params(*HANG)
    first = start(site)
    started.append(first)
    wait_for(lambda: site.training_runs_on("b"), what="the training", also=lambda: first.poll() is None)
    run = site.latest()
    second = start(site)
    started.append(second)
    with site.store() as store:
        wait_for(lambda: bool(store.queue.places()), what="a request", also=lambda: second.poll() is None)
        (place,) = store.queue.places()
    result = nodes_command(site, "--cluster", "local")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "queue for slots: 1" in result.stdout
    assert f"    a slots 0-1, b slots 0-1: held by run {run.id} (cli) since " in result.stdout

    second.send_signal(signal.SIGINT)
    output, _ = second.communicate(timeout=DEADLINE_S)
    assert f"held by run {run.id} (cli) since " in output
    assert "position 1 of 1" in output
    with site.store() as store:
        assert store.runs.get(place.request.run).status is Status.CANCELLED
        assert store.queue.places() == []

    # The run of a dead controller is collected and judged.
    first.kill()
    first.wait()
    reaped = nodes_command(site, "reap", "--cluster", "local")
    assert reaped.returncode == 0, reaped.stdout + reaped.stderr
    ended = "infra_failure: the controller ended the job on node b (its controller has ended)"
    assert f"run {run.id}: norm_train_gpus_0,1_autocast_null_nodes_2/train: closed as {ended}" in reaped.stdout, (
        reaped.stdout
    )
    with site.store() as store:
        assert store.leases.all() == []
        assert store.runs.get(run.id).status is Status.INFRA_FAILURE
    assert site.left_behind() == []


def test_reap_ends_leftovers_of_a_dead_controller_after_the_lease(
    site: Site, started: "list[subprocess.Popen[str]]"
) -> None:
    site.edit_params(*HANG)
    first = start(site)
    started.append(first)
    wait_for(lambda: site.training_runs_on("b"), what="the training", also=lambda: first.poll() is None)
    run = site.latest()
    first.kill()
    first.wait()
    for kept in (site.home / "unfinished").iterdir():
        kept.unlink()  # as on another machine
    with site.store() as store:
        assert store.leases.renew(run.id, -1)
    reaped = nodes_command(site, "reap", "--cluster", "local")
    assert reaped.returncode == 0, reaped.stdout + reaped.stderr
    assert f"b: run {run.id}: ended norm_train" in reaped.stdout, reaped.stdout
    assert f"a: run {run.id}: has no jobs on this node; claim released" in reaped.stdout, reaped.stdout
    assert reaped.stdout.count("its expired lease on slots 0-1 was dropped") == 2, reaped.stdout
    assert site.left_behind() == []


@pytest.mark.full
def test_runs_of_an_unknown_database_are_awaited_and_not_reaped(
    site: Site, tmp_path: Path, started: "list[subprocess.Popen[str]]"
) -> None:
    site.edit_params(*HANG)
    first = start(site)
    started.append(first)
    wait_for(lambda: site.training_runs_on("b"), what="the training", also=lambda: first.poll() is None)
    run = site.latest()
    other = Site(tmp_path / "other", site.nodes)
    # A living run is left alone, also when it is named.
    alone = nodes_command(site, "reap", "--cluster", "local", "--run", run.id)
    assert (alone.returncode, alone.stdout.count("; skipped")) == (0, 2), alone.stdout + alone.stderr
    report = json.loads(nodes_command(site, "--cluster", "local", "--json").stdout)
    # The toy's part on node a ends by itself.
    assert {entry["name"]: list(entry["runs"]) for entry in report["nodes"]}["b"] == [run.id]
    late = other.run("--wait-minutes", "0")
    assert late.code == 5, late.output
    assert late.run.status is Status.INFRA_FAILURE
    assert f"run {run.id} has no lease in this database" in late.run.reason
    with other.store() as store:
        assert (store.leases.all(), store.queue.places()) == ([], [])
    assert f"run {run.id} of another controller (" in nodes_command(other, "--cluster", "local").stdout
    spared = nodes_command(other, "reap", "a", "--cluster", "local")
    assert spared.stdout.count("unknown to this database (other controller?); skipped") == 1, spared.stdout
    assert site.training_runs_on("b")
    ended = nodes_command(other, "reap", "--cluster", "local", "--run", run.id)
    assert f"b: run {run.id}: ended norm_train" in ended.stdout, ended.stdout
    first.communicate(timeout=DEADLINE_S)
    assert site.left_behind() == []


@pytest.mark.full
def test_leftovers_of_runs_that_a_restored_backup_lacks_are_ended(
    site: Site, tmp_path: Path, started: "list[subprocess.Popen[str]]"
) -> None:
    """By the steps of the page Operations."""
    env = {**site.env, "PATH": f"{TIPCFLOW.parent}:{os.environ['PATH']}"}
    site.store().close()
    shell("tipcflow db backup metrics.backup", env, cwd=tmp_path)
    site.edit_params(*HANG)
    first = start(site)
    started.append(first)
    wait_for(lambda: site.training_runs_on("b"), what="the training", also=lambda: first.poll() is None)
    run = site.latest().id
    first.kill()
    first.wait()
    shell("tipcflow db restore --replace metrics.backup", env, cwd=tmp_path)
    lines: list[str] = []
    with site.store() as store:
        swept = leftovers(Upkeep(store, site.home, site.configs, connect, lines.append, now=store.now()))
    assert swept.startswith("2 nodes checked: leftovers of 0 runs ended")
    assert len([line for line in lines if f"run {run}: unknown to this database" in line]) == 2, lines
    site.edit_params(*reversed(HANG))
    waiting = site.run("--wait-minutes", "0")
    assert f"run {run} has no lease in this database" in waiting.run.reason, waiting.output

    steps = next(block for block in blocks("Back up and restore") if "nodes reap" in block)
    find, end = (line.replace("RUN", run) for line in steps.splitlines())
    assert shell(find, env, cwd=tmp_path).count(f"run {run} of another controller (") == 2
    shell(end, env, cwd=tmp_path)
    assert site.left_behind() == []
    folders = [Path(node.workspace) / "runs" / run for node in site.nodes.cluster.nodes]
    assert [folder.exists() for folder in folders] == [True, True]
    remove = inline("rm -rf runs/RUN").replace("RUN", run)
    for node in site.nodes.cluster.nodes:
        site.nodes.exec(node.name, ["sh", "-c", f"cd {node.workspace} && {remove}"])
    assert [folder.exists() for folder in folders] == [False, False]
    outcome = site.run()
    assert outcome.run.status is Status.PASS, outcome.output


@pytest.mark.full
def test_unreachable_node_is_named(site: Site) -> None:
    site.nodes.kill_sshd("b")
    try:
        result, reaped = (nodes_command(site, *words, "--cluster", "local") for words in ([], ["reap"]))
    finally:
        site.nodes.start_sshd("b")
    assert result.returncode == reaped.returncode == 5
    assert "local: 2 nodes, 2 of 4 slots free, 1 unhealthy" in result.stdout
    assert "a: nothing to do\nb: unreachable: " in reaped.stdout
