"""`tipcflow demo --suite parameter_server`: servers and trainers on two nodes, as a DAG run of a real Airflow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.samples.site import HOME, needs_environment

from tipcflow.domain import Status, StepKind
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow.store import Store

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.full,
    pytest.mark.timeout(900),
    needs_environment("node-ps", "no .tipcflow/envs/node-ps: make test-full makes it"),
]

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [str(Path(sys.executable).with_name("tipcflow")), "demo", "--suite", "parameter_server", "--exit"]
DEADLINE_S = 600.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that shares the nodes' environments with this clone."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "envs").symlink_to(HOME / "envs")
    return tmp_path / "home"


def test_chain_with_parameter_servers_passes_in_airflow(home: Path) -> None:
    env = os.environ | {"TIPCFLOW_HOME": str(home), "TIPCFLOW_DATABASE_URL": ""}
    done = subprocess.run(
        COMMAND, cwd=ROOT, env=env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().splitlines()[-1] == "pass"
    with Store.open(f"sqlite:///{home / 'tipcflow.db'}") as store:
        (run,) = store.runs.newest()
        document = store.documents.get(run.id, AirflowDocument)
        plan, checks = store.plans.get(run.id), store.checks.results(run.id)
        losses = store.measurements.of(run.id, metric="loss")
        attempts = store.attempts.of(run.id)
        assert store.leases.all() == []
    assert document is not None
    assert document.dag_id == "parameter_server.sparse_embedding.train_ps"
    train = next(step for step in plan.steps if step.kind is StepKind.TRAIN)
    records = next(attempt.records for attempt in attempts if attempt.step == train.id)
    assert [record.servers_finished for record in records] == [1, 1]
    assert {(sample.node, sample.rank) for sample in losses} == {("a", 0), ("b", 1)}
    statuses = {check.check: check.status for check in checks}
    for name in ("ran.group", "ran.world_size", "loss.falling"):
        assert statuses[name] is Status.PASS, name
    assert list((home / "nodes").iterdir()) == []
