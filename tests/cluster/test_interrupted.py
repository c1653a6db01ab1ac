"""A training that was interrupted, with an accepted run of the same chain and seed in the history: its shorter
loss curve is not a failure of the model."""

import signal
from pathlib import Path

import pytest
from tests.support.certify import Outcome, Site, wait_for
from tests.support.faults.case import STRICT
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Run, Status, StepKind
from tipcflow.execute.run.step import StepTask

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    """With an accepted run in the history; from now on trainings take 30 s."""
    made = Site(tmp_path, nodes)
    made.configure_policy(**STRICT)
    slow = tmp_path / "slow"
    made.edit_params("norm_train:train.py", f"norm_train:train.py --step-time 0.3 --slow-while {slow}")
    first = made.run()
    assert first.run.status is Status.PASS, first.output
    slow.touch()
    return made


def printed(site: Site) -> bool:
    """Whether a rank of the newest run has printed a loss: an empty curve would be compared with nothing."""
    name = site.latest().id
    for node in site.nodes.cluster.nodes:
        for log in Path(node.workspace).glob(f"runs/{name}/src/**/workerlog.*"):
            if "loss" in log.read_text():
                return True
    return False


def assert_nothing_failed(site: Site, run: Run) -> None:
    with site.store() as store:
        results = store.checks.results(run.id)
        assert store.measurements.of(run.id, metric="loss"), "the losses of the interrupted training were not read"
    assert [one for one in results if one.status in (Status.FAILED, Status.REGRESSION)] == []
    assert site.left_behind() == []


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)], ids=["Ctrl-C", "TERM"]
)
def test_a_training_that_a_user_stops_is_cancelled(site: Site, number: signal.Signals) -> None:
    outcome: Outcome = site.interrupt(lambda: site.training_runs_on("b") and printed(site), number)
    assert (outcome.code, outcome.run.status) == (3, Status.CANCELLED), outcome.output
    assert_nothing_failed(site, outcome.run)


@pytest.mark.full
def test_a_training_that_the_budget_ends_is_an_infra_failure(site: Site) -> None:
    site.configure_suite(budget_minutes=0.5)
    outcome = site.run()
    assert (outcome.code, outcome.run.status) == (5, Status.INFRA_FAILURE), outcome.output
    assert outcome.run.reason.startswith(f"{TRAIN}: the run's budget"), outcome.run.reason
    assert_nothing_failed(site, outcome.run)


# tests/e2e/test_airflow.py has it with a real Airflow.
@pytest.mark.full
def test_a_training_whose_dag_run_is_marked_as_failed_is_cancelled(site: Site) -> None:
    """Airflow ends the training's tasks, and runs the teardowns."""
    tasks = Tasks(site)
    tasks.begin()
    tasks.step(StepKind.PREPARE)

    def begin(part: StepTask) -> None:
        part.begin()

    for node in ("a", "b"):
        tasks.with_part(StepKind.TRAIN, node, begin)
    wait_for(lambda: printed(site), what="a loss")
    run = tasks.finish()
    assert run.status is Status.CANCELLED, run.reason
    assert_nothing_failed(site, run)
