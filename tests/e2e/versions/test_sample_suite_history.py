"""A slow-down and a failure of the sample suite, each in one of 64 commits, are found through Airflow.

The trainings are real: Paddle on two nodes, which are processes of one machine. So the batch cost is as noisy as
the machine is busy, and the slow-down is that of a real mistake: the forward pass is made twice more per step.
If the machine's load halves between the runs of the two ends and those of the commits, the search ends without a
commit, as it should: the test runs without others.
"""

import shutil
import sys
import time
from collections.abc import Iterator

import pytest
import yaml
from tests.cluster.versions.git_history import History
from tests.support.certify import MODE, ROOT, Site
from tests.support.scheduler import Scheduler

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.triggers import BISECT

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(3600)]
SUITE = "mobilenet_v3_small"
PARAMS = f"test_tipc/configs/{SUITE}/train_fleet_infer_python.txt"
COMMITS, BAD = 64, 23
SEARCH_S = 3000.0
FORWARD = "            with precision.forward():\n"
SLOWER = (
    "            with paddle.no_grad():  # top-5 of the batch, with and without its own update\n"
    "                for _ in range(2):\n"
    "                    learner.model(paddle.to_tensor(pictures))\n"
)
LABELS = "functional.cross_entropy(logits, paddle.to_tensor(labels))"


@pytest.fixture(scope="module")
def airflow_with_paddle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """Two nodes with Paddle, one process each, and a git history of the sample suite on the branches `slow` and
    `broken`."""
    python = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
    assert python.exists(), f"{python} is missing: make install"
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=python, slots=1) as nodes:
        site = Site(tmp_path_factory.mktemp("airflow"), nodes)
        make_history(site)
        dags = site.home.parent / "dags"
        shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("chains_*", "__pycache__"))
        shutil.copytree(ROOT / "configs" / "dialects", site.configs / "dialects", dirs_exist_ok=True)
        (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
        connections = connections_env(nodes.cluster)
        with airflow_stack(
            site.home, dags=dags, plugins=ROOT / "plugins", configs=site.configs, connections=connections
        ) as stack:
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags("certify", "bisect")
            yield scheduler


def make_history(site: Site) -> None:
    """The sample suite as a git repository: each branch has 64 commits, one of which is bad."""
    made = ("lite_data", "images", "output", "log", "pretrain_models", "__pycache__")
    site.suite = site.suite.with_name(SUITE)
    shutil.copytree(ROOT / "examples" / SUITE, site.suite, ignore=shutil.ignore_patterns(*made))
    params = site.suite / PARAMS
    params.write_text(params.read_text().replace("192.168.0.2;0,1", "192.168.0.2;0", 1))
    suite = yaml.safe_load((ROOT / "configs" / "suites" / f"{SUITE}.yaml").read_text())
    (site.configs / "suites" / f"{SUITE}.yaml").write_text(yaml.safe_dump({**suite, "folder": str(site.suite)}))
    history = History(site, COMMITS)
    history.git("tag", "start")
    training = site.suite / "mobilenet" / "training.py"
    text = training.read_text()
    assert FORWARD in text
    assert LABELS in text
    bad = {
        "slow": text.replace(FORWARD, SLOWER + FORWARD, 1),
        "broken": text.replace(LABELS, LABELS.replace("(labels", "(labels[1:]"), 1),
    }
    for branch, changed in bad.items():
        history.git("checkout", "-q", "-b", branch, "start")
        for number in range(1, COMMITS + 1):
            (site.suite / ("README.md" if number % 4 == 0 else "notes.txt")).write_text(f"{branch} {number}\n")
            if number == BAD:
                training.write_text(changed)
            history.commit(f"Change {number}")


def found(scheduler: Scheduler, branch: str, **conf: object) -> BisectionDocument:
    """Search the bad commit of a branch; print what the search took, and return its result."""
    chain = {"suite": SUITE, "params_file": PARAMS, "mode": MODE, "cluster": "local"}
    began = time.monotonic()
    search = scheduler.start("bisect", **chain, good="start", bad=branch, budget_minutes=45.0, **conf)
    ended = scheduler.ended(search, seconds=SEARCH_S)
    log = scheduler.log(ended, "search")
    assert ended.state == "success", log
    with scheduler.site.store() as store:
        runs = [run for run in store.runs.newest(limit=100) if run.trigger == BISECT]
        results = [found for run in runs if (found := store.documents.get(run.id, BisectionDocument))]
    result = next(one for one in results if one.dag_run == ended.run_id)
    lines = [line for line in log.splitlines() if line.startswith(("run ", "  ")) or "prior" in line]
    took = f"{len(result.runs)} runs, {time.monotonic() - began:.0f} s in Airflow"
    sys.stdout.write("\n".join([*lines, result.sentence, took, ""]))
    assert result.is_certain
    assert [change.title for change in result.changes] == [f"Change {BAD}"]
    assert scheduler.site.left_behind() == []
    return result


@pytest.mark.quiet
def test_slow_down_of_a_real_training_is_found_among_64_commits(airflow_with_paddle: Scheduler) -> None:
    result = found(airflow_with_paddle, "slow", metric="batch_cost", step="train", max_runs=40)
    with airflow_with_paddle.site.store() as store:
        steps = [{step.id.rpartition("/")[2] for step in store.plans.get(run).steps} for run in result.runs]
        nodes = {node for run in result.runs for node in store.runs.get(run).nodes}
    assert nodes == {"a", "b"}
    assert sum("infer_cpu" in names for names in steps) == 1, "later runs end after the training"


def test_failure_of_a_real_training_is_found_among_64_commits(airflow_with_paddle: Scheduler) -> None:
    with airflow_with_paddle.site.store() as store:
        # A search counts earlier runs of its ends, such as those of the other test.
        earlier = {run.id for run in store.runs.newest(limit=100)}
    result = found(airflow_with_paddle, "broken", metric="failure", max_runs=25)
    assert len(set(result.runs) - earlier) <= 16
