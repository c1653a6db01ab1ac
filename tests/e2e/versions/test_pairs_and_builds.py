"""The DAGs `ab` and `bisect` in a real Airflow with two real nodes: pairs with one lease, framework builds."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.versions.git_history import History
from tests.support.certify import MODE, ROOT, Site
from tests.support.framework.wheels import make_wheel, sha256_of
from tests.support.scheduler import DAG, Scheduler, make_catalog

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.airflow_api import DagRun
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Status
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.run_documents import AbDocument
from tipcflow.domain.triggers import BISECT

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1200)]
FILE = "toy/train_infer_python.txt"
BATCH_COST = "avg_batch_cost: {args.step_time:.5f} sec"
# 0.5 % of noise, and the framework's part, if the run has a framework build.
MEASURED = (
    "avg_batch_cost: {args.step_time * __import__('random').uniform(0.995, 1.005) * framework_factor():.7f} sec"
)
FACTOR = """
def framework_factor():
    try:
        import toyframe
    except ImportError:
        return 1.0
    return 1.3 if toyframe.word == "slow" else 1.0


generator ="""


@pytest.fixture(scope="module")
def airflow_with_versions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """A suite of which the third commit is 10 % slower."""
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as nodes:
        site = Site(tmp_path_factory.mktemp("airflow"), nodes)
        caches = tmp_path_factory.mktemp("caches")
        for node in nodes.cluster.nodes:
            site.configure_node(node.name, cache=str(caches / node.name), env={"PIP_NO_INDEX": "1"})
        dags = make_catalog(site)
        (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
        train = site.suite / "train.py"
        text = train.read_text()
        assert BATCH_COST in text
        train.write_text(text.replace(BATCH_COST, MEASURED, 1).replace("\ngenerator =", FACTOR, 1))
        History(site, 2).plant(2, "args.step_time * __import__", "args.step_time * 1.1 * __import__")
        connections = connections_env(nodes.cluster)
        with airflow_stack(
            site.home, dags=dags, plugins=ROOT / "plugins", configs=site.configs, connections=connections
        ) as stack:
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags("certify", "ab", "bisect", DAG)
            yield scheduler


def start(scheduler: Scheduler, dag_id: str, **conf: object) -> DagRun:
    """Start a DAG for the toy chain and the metric batch_cost."""
    chain = {"suite": "toy", "params_file": FILE, "mode": MODE, "cluster": "local"}
    return scheduler.start(dag_id, **{**chain, **conf})


def test_run_that_waits_starts_between_pairs_not_within_one(airflow_with_versions: Scheduler) -> None:
    scheduler = airflow_with_versions
    search = start(scheduler, "ab", a="main~2", b="main", metric=["batch_cost"])

    def second_pair_has_started() -> bool:
        with scheduler.site.store() as store:
            return len([run for run in store.runs.newest(limit=20) if run.trigger == "ab"]) >= 3

    scheduler.until(search, second_pair_has_started, "the second pair", seconds=300)
    other = scheduler.start(DAG)
    ended = scheduler.ended(search, seconds=900)
    assert ended.state == "failed", "B is worse"
    assert "worse: 1 of 1 metrics" in scheduler.log(ended, "compare")
    assert scheduler.run_of(scheduler.ended(other)).status is Status.PASS
    with scheduler.site.store() as store:
        runs = store.runs.newest(limit=50)
        began = {run.id: store.attempts.of(run.id)[0].started_at for run in runs}
        results = [store.documents.get(run.id, AbDocument) for run in runs]
    (result,) = [found.body() for found in results if found]
    (metric,) = result["metrics"]
    assert metric["outcome"] == "worse"
    assert 1.05 < metric["low"] < 1.1 < metric["high"] < 1.15
    order = [run.trigger for run in sorted(runs, key=lambda run: began[run.id])]
    position = order.index("test")
    assert position < len(order) - 1, "the other run had to wait for the end of the comparison"
    assert position % 2 == 0, f"the other run started within a pair: {order}"
    assert scheduler.site.left_behind() == []


def test_bisection_over_builds_ends_with_the_slow_wheel(airflow_with_versions: Scheduler) -> None:
    scheduler = airflow_with_versions
    folder = scheduler.site.home / "wheels"
    builds = []
    for number in range(6):
        wheel = make_wheel(folder, version=f"1.{number}", text="slow" if number >= 4 else "fast")
        builds.append(f"{wheel.name} --hash=sha256:{sha256_of(wheel)}")
    search = start(
        scheduler, "bisect", builds=builds, suite_ref="main~2", metric="batch_cost", step="train", parallel=2
    )
    ended = scheduler.ended(search, seconds=1100)
    assert ended.state == "success", scheduler.log(ended, "search")
    assert "1.4 (wheel " in scheduler.log(ended, "verdict")
    with scheduler.site.store() as store:
        runs = [run for run in store.runs.newest(limit=50) if run.trigger == BISECT]
        results = [store.documents.get(run.id, BisectionDocument) for run in runs]
    (result,) = [found for found in results if found]
    assert result.is_certain
    assert len(result.changes) == 1
    assert all("toyframe 1." in run.framework for run in runs)
    assert scheduler.site.left_behind() == []
