"""The metrics database is saved while a chain trains in a real Airflow, lost, and restored."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.certify import ROOT, TIPCFLOW, Site
from tests.support.faults.gate import Gate
from tests.support.installed.operations_page import commands, shell
from tests.support.scheduler import Scheduler, make_catalog
from tests.unit.store.backup.test_backup import rows_of

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes
from devcluster.local_nodes.processes import children
from tipcflow.airflow_api import RunState
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]
SECTION = "Back up and restore"


@pytest.fixture
def scheduler(nodes: LocalNodes, tmp_path: Path) -> Iterator[Scheduler]:
    site = Site(tmp_path, nodes)
    site.configure_policy(hang_s=0)
    dags = make_catalog(site, ("train_infer_python", "second"))
    (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    connections = connections_env(nodes.cluster)
    with airflow_stack(
        site.home, dags=dags, plugins=ROOT / "plugins", configs=site.configs, connections=connections
    ) as stack:
        scheduler = Scheduler(site, stack)
        scheduler.wait_for_dags("toy.toy.train_infer_python", "toy.toy.second", "maintenance")
        yield scheduler


def run(scheduler: Scheduler, command: str, folder: Path) -> str:
    """Run a command of the page in the environment of the deployment; return its output."""
    env = {**scheduler.site.env, "PATH": f"{TIPCFLOW.parent}:{os.environ['PATH']}"}
    return shell(command.replace("/srv/backup", str(folder)), env, cwd=folder)


def stop(scheduler: Scheduler) -> None:
    """End all components and their workers."""
    stack = scheduler.stack
    for name in ("scheduler", *(name for name in stack.components if name != "scheduler")):
        family = [pid for worker in children(stack.pids[name]) for pid in (*children(worker), worker)]
        stack.kill(name)
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_backup_while_a_chain_trains_loses_nothing(scheduler: Scheduler, tmp_path: Path) -> None:
    site, stack = scheduler.site, scheduler.stack
    folder, lost = tmp_path / "backup", tmp_path / "lost"
    folder.mkdir()
    lost.mkdir()
    url = f"sqlite:///{site.home / 'tipcflow.db'}"
    _, ended = scheduler.certify()
    assert ended.status is Status.PASS, ended.reason
    gate = Gate(site, tmp_path)
    during = scheduler.start()
    scheduler.until(during, lambda: gate.waiting() >= 4, "the training", 200)

    def is_deferred(task: str) -> bool:
        states = [state for name, state in scheduler.states(during).items() if name.partition("[")[0] == task]
        return set(states) == {"deferred"}

    scheduler.until(during, lambda: is_deferred("train"), "the triggerer", 120)
    with site.store() as store:
        tried = [(one.step, one.attempt) for one in store.attempts.of(during.run)]
    before = rows_of(url)
    run(scheduler, commands(SECTION, "tipcflow db backup")[0], folder)
    between = scheduler.start("toy.toy.second")
    scheduler.until(between, lambda: scheduler.states(between).get("acquire") == "deferred", "the queue", 200)
    stop(scheduler)
    for path in site.home.glob("tipcflow.db*"):
        path.rename(lost / path.name)
    (copy,) = folder.glob("metrics-*.backup")
    restore = commands(SECTION, "tipcflow db restore")[0]
    run(scheduler, restore.replace("/srv/backup/metrics-2026-11-23.backup", str(copy)), folder)

    after = rows_of(url)
    assert sum(map(len, before.values())) > 50
    for table, rows in before.items():
        # Leases and members of the active run change all the time.
        assert {row for row in rows if during.run not in row} <= set(after[table]), table
    with site.store() as store:
        assert store.runs.get(during.run).status is None
        assert [(one.step, one.attempt) for one in store.attempts.of(during.run)] == tried
        assert {lease.run for lease in store.leases.all()} == {during.run}
        assert between.run not in store.runs.known([between.run])

    for name in stack.components:
        stack.restart(name)
    stack.wait_ready()
    gate.open()
    assert scheduler.ended(during, 400).state is RunState.SUCCESS, scheduler.states(during)
    finished = scheduler.run_of(during)
    assert finished.status is Status.PASS, finished.reason
    with site.store() as store:
        steps = [one.step for one in store.attempts.of(during.run)]
        losses = store.measurements.of(during.run, metric="loss")
    assert len(steps) == len(set(steps)), "no step was tried again"
    assert {loss.node for loss in losses} == {"a", "b"}
    assert scheduler.ended(between, 400).state is RunState.FAILED, "it began after the backup"
    # Steps 4 and 5.
    assert scheduler.ended(scheduler.start("maintenance")).state is RunState.SUCCESS
    for one in (ended.id, during.run):
        run(scheduler, f"tipcflow certificate verify {one}", folder)
    assert site.left_behind() == []
