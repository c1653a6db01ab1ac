"""SIGKILL of Airflow's processes during a bisection: it continues, and no run is lost or repeated."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.versions.git_history import History
from tests.support.certify import MODE, ROOT, Site
from tests.support.scheduler import Scheduler, make_catalog

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from devcluster.local_nodes.processes import children
from tipcflow.airflow_api import DagRun
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Run, Status
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.triggers import BISECT

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]
COMMITS, SLOW = 8, 5
BATCH_COST = "avg_batch_cost: {args.step_time:.5f} sec"
SLOWER = "avg_batch_cost: {args.step_time * 1.2:.5f} sec"
# Both ends twice, and three commits.
RUNS = 7


@pytest.fixture(scope="module")
def airflow_with_commits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """A suite of eight commits, of which one is slower."""
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as nodes:
        site = Site(tmp_path_factory.mktemp("airflow"), nodes)
        dags = make_catalog(site)
        (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
        History(site, COMMITS).plant(SLOW, BATCH_COST, SLOWER)
        connections = connections_env(nodes.cluster)
        with airflow_stack(
            site.home, dags=dags, plugins=ROOT / "plugins", configs=site.configs, connections=connections
        ) as stack:
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags("certify", "bisect")
            yield scheduler


def start(scheduler: Scheduler) -> DagRun:
    """Start the bisection."""
    chain = {"suite": "toy", "params_file": "toy/train_infer_python.txt", "mode": MODE, "cluster": "local"}
    return scheduler.start(
        "bisect", **chain, good=f"main~{COMMITS}", bad="main", metric="batch_cost", step="train"
    )


def bisected(scheduler: Scheduler) -> list[Run]:
    """The runs of bisections."""
    with scheduler.site.store() as store:
        return [run for run in store.runs.newest(limit=100) if run.trigger == BISECT]


def kill(scheduler: Scheduler, *components: str) -> None:
    """SIGKILL components with their workers; start them again a little later, as a supervisor of services does."""
    stack = scheduler.stack
    for name in components:
        family = [pid for worker in children(stack.pids[name]) for pid in (*children(worker), worker)]
        stack.kill(name)
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    time.sleep(3.0)
    for name in components:
        stack.restart(name)
    stack.wait_ready(deadline_s=180)


def test_bisection_survives_sigkill_of_scheduler_and_triggerer(airflow_with_commits: Scheduler) -> None:
    scheduler = airflow_with_commits
    search = start(scheduler)

    def trains(number: int) -> bool:
        active = [run for run in bisected(scheduler) if run.status is None]
        with scheduler.site.store() as store:
            tried = [one.step for run in active for one in store.attempts.of(run.id)]
        return len(bisected(scheduler)) == number and any(step.endswith("/train") for step in tried)

    # The scheduler has the workers, among them that of the task `search`; the triggerer waits for its runs.
    for number, killed in ((2, ("scheduler",)), (4, ("triggerer",)), (6, ("scheduler", "triggerer"))):
        scheduler.until(search, lambda number=number: trains(number), f"the training of run {number}", seconds=300)
        kill(scheduler, *killed)
    ended = scheduler.ended(search, seconds=600)
    log = scheduler.log(ended, "search")
    assert ended.state == "success", log
    runs = bisected(scheduler)
    with scheduler.site.store() as store:
        (result,) = [found for run in runs if (found := store.documents.get(run.id, BisectionDocument))]
        tried = {run.id: [one.step for one in store.attempts.of(run.id)] for run in runs}
    assert ([change.title for change in result.changes], result.is_certain) == ([f"Change {SLOW}"], True)
    assert [run.status for run in runs] == [Status.PASS] * len(runs), [(run.id, run.reason) for run in runs]
    assert sorted(result.runs) == sorted(run.id for run in runs), "no run is lost"
    assert len(runs) <= RUNS, "no run is repeated"
    assert [steps for steps in tried.values() if len(steps) != len(set(steps))] == [], "no step is repeated"
    # The same search again: the stored runs are the result.
    again = scheduler.ended(start(scheduler))
    assert again.state == "success"
    assert result.sentence.split("; ")[0] in scheduler.log(again, "search")
    assert len(bisected(scheduler)) == len(runs)
    assert scheduler.site.left_behind() == []
