"""A regression and a failure start bisections in a real Airflow with two real nodes, and end with the commit."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.versions.git_history import History
from tests.support.certify import ROOT, Site
from tests.support.precedents import remember
from tests.support.scheduler import Scheduler, make_catalog

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Run, Status
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.triggers import BISECT
from tipcflow.execute.overview.alerts import load_alert

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
FILE = "toy/train_infer_python.txt"
COMMITS, SLOW, BROKEN = 64, 23, 52
BATCH_COST = "avg_batch_cost: {args.step_time:.5f} sec"
SLOWER = "avg_batch_cost: {args.step_time * 4:.5f} sec"


@pytest.fixture(scope="module")
def airflow_with_history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """A suite of 64 commits, of which one is slow and one fails, and an accepted history of the first commit."""
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as nodes:
        site = Site(tmp_path_factory.mktemp("airflow"), nodes)
        dags = make_catalog(site)
        (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
        bisect = {"start": "all", "parallel": 2}
        site.configure_policy(metrics={"batch_cost": {}}, node_health={"probe": 1000.0}, bisect=bisect)
        history = History(site, COMMITS)
        train = site.suite / "train.py"
        for number in range(1, COMMITS + 1):
            (site.suite / "notes.txt").write_text(str(number))
            if number == SLOW:
                train.write_text(train.read_text().replace(BATCH_COST, SLOWER, 1))
            if number == BROKEN:
                train.write_text("raise SystemExit('broken')\n")
            history.commit(f"Change {number}")
        connections = connections_env(nodes.cluster)
        with airflow_stack(
            site.home, dags=dags, plugins=ROOT / "plugins", configs=site.configs, connections=connections
        ) as stack:
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags("certify", "bisect", "maintenance", "confirm")
            run = certify(scheduler, 0)
            assert run.status is Status.PASS, run.reason
            with site.store() as store:
                remember(store, run, runs=6)
            yield scheduler


def certify(scheduler: Scheduler, number: int) -> Run:
    """Run the chain at a commit."""
    ref = f"main~{COMMITS - number}"
    return scheduler.certify("certify", suite="toy", params_file=FILE, suite_ref=ref)[1]


def bisected(scheduler: Scheduler, bad: Run) -> BisectionDocument:
    """Let the DAG `maintenance` start the bisection of a run; return its result."""
    sweep = scheduler.ended(scheduler.start("maintenance"))
    assert "1 bisections started, 0 wait, 0 were active" in scheduler.log(sweep, "bisections")
    search = scheduler.api.dag_run("bisect", f"auto__{bad.id}")
    ended = scheduler.ended(search, seconds=600)
    assert ended.state == "success", scheduler.log(ended, "search")
    with scheduler.site.store() as store:
        result = store.documents.get(bad.id, BisectionDocument)
    assert result is not None
    return result


def test_regression_of_a_run_ends_with_the_commit_in_its_alert(airflow_with_history: Scheduler) -> None:
    scheduler = airflow_with_history
    bad = certify(scheduler, BROKEN - 1)
    assert bad.status is Status.REGRESSION, bad.reason
    result = bisected(scheduler, bad)
    assert ([change.title for change in result.changes], result.is_certain) == ([f"Change {SLOW}"], True)
    with scheduler.site.store() as store:
        detail = load_alert(store, 1)
        runs = [run for run in store.runs.newest(limit=50) if run.trigger == BISECT]
        assert store.history.accepted(bad.chain, bad.mode, bad.environment).count(bad.id) == 0
    assert detail.bisection == result
    assert [event.kind.value for event in detail.events] == ["opened", "bisected"]
    assert len(runs) <= 16
    assert scheduler.site.left_behind() == []


def test_failure_of_a_run_ends_with_its_commit(airflow_with_history: Scheduler) -> None:
    scheduler = airflow_with_history
    bad = certify(scheduler, COMMITS)
    assert bad.status is Status.FAILED, bad.reason
    result = bisected(scheduler, bad)
    assert ([change.title for change in result.changes], result.is_certain) == ([f"Change {BROKEN}"], True)
    assert result.metric == "failure"
    assert scheduler.site.left_behind() == []
