"""`tipcflow run` on two nodes with real sshd, with the toy suite: the good way, and every way to be stopped."""

import json
import signal
from pathlib import Path

import pytest
from tests.support.certify import Site
from tests.support.github.world import make_repository

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.config.run_documents import OpenedDocument
from tipcflow.domain import Status

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    return Site(tmp_path, nodes)


def test_a_single_command_leads_to_a_passing_verdict(site: Site) -> None:
    first = site.run()
    assert first.code == 0, first.output
    assert first.stdout.splitlines()[-1] == "pass"
    assert site.left_behind() == []
    facts = site.facts(first.run)
    assert {step: entry["status"] for step, entry in facts["steps"].items()}[TRAIN] == "pass"
    with site.store() as store:
        losses = store.measurements.of(first.run.id, metric="loss")
        assert {(m.node, m.rank) for m in losses} == {("a", 0), ("a", 1), ("b", 2), ("b", 3)}
        assert len(losses) == 4 * 10
        assert len(store.nodes.facts(first.run.id)) == 2
    fetched = [path.name for path in (site.home / "runs").rglob("*") if path.is_file()]
    assert not [name for name in fetched if name.startswith(("envlog", "backup_env"))], (
        "the launcher's environment"
    )
    certificate = json.loads((site.home / "runs" / first.run.id / "certificate.json").read_text())
    assert certificate["verdict"]["status"] == "pass"

    second = site.run()
    assert second.code == 0, second.output
    assert "equal those of run" in second.output


@pytest.mark.full
def test_accepted_run_of_a_commit_records_the_opened_files(site: Site) -> None:
    head = make_repository(site.suite)
    done = site.run()
    assert done.code == 0, done.output
    with site.store() as store:
        record = store.documents.get(done.run.id, OpenedDocument)
    assert record is not None
    assert record.commit == head
    assert {"train.py", "tools/export_model.py", "deploy/infer.py"} <= set(record.paths)
    dropped = site.run("--drop", "*/infer_cpu/*onednn_True*")
    with site.store() as store:
        assert store.documents.get(dropped.run.id, OpenedDocument) is None


def test_dropped_legs_are_counted_and_a_wrong_name_starts_nothing(site: Site) -> None:
    done = site.run("--drop", "*/infer_cpu/*onednn_True*")
    assert done.code == 0, done.output
    with site.store() as store:
        legs = store.steps.leg_statuses(done.run.id)
    cpu = {name: result for name, result in legs.items() if name.step.endswith("/infer_cpu")}
    assert {result for name, result in cpu.items() if "onednn_True" in name.leg} == {
        (Status.NOT_RUN, "dropped by the request")
    }
    assert {status for name, (status, _) in cpu.items() if "onednn_False" in name.leg} == {Status.PASS}
    assert "dropped by the request" in done.output
    wrong = site.run("--drop", "*/infer_cpu/int8")
    assert wrong.code == 2
    assert "drop: no leg matches; found '*/infer_cpu/int8'" in " ".join(wrong.output.split())
    assert wrong.stdout.splitlines()[-1] == "config_error"


@pytest.mark.full
def test_launcher_environment_dump_is_never_fetched(site: Site) -> None:
    outcome = site.run()
    assert outcome.code == 0, outcome.output
    fetched = [path.name for path in (site.home / "runs").rglob("*") if path.is_file()]
    assert "workerlog.0" in fetched
    assert not [name for name in fetched if name.startswith(("envlog", "backup_env"))]


@pytest.mark.full
def test_compat_bash_runs_the_scripts_own_commands(site: Site) -> None:
    """The toy has no --gpus, as Paddle without GPUs: the script fails, and the reason names the option."""
    outcome = site.run("--compat", "bash")
    assert outcome.code == 1, outcome.output
    assert outcome.run.status is Status.FAILED
    assert site.left_behind() == []


def test_twin_runs_in_one(site: Site) -> None:
    outcome = site.run("--repeats", "2")
    assert outcome.code == 0, outcome.output
    with site.store() as store:
        results = store.checks.results(outcome.run.id)
    assert any(r.check == "loss.reproducible" and r.status is Status.PASS for r in results), results


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_a_run_is_stopped_by_a_user(site: Site, number: signal.Signals) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@3")
    outcome = site.interrupt(lambda: site.training_runs_on("b"), number)
    assert outcome.code == 3, outcome.output
    assert outcome.run.status is Status.CANCELLED
    assert outcome.stdout.splitlines()[-1] == "cancelled"
    assert site.left_behind() == []


@pytest.mark.parametrize(
    ("inject", "words"),
    [
        pytest.param("exit@2", "training went wrong: the data is broken", marks=pytest.mark.full),
        ("exit@0", "training went wrong: the data is broken"),
        ("silent@0", "did not write"),
    ],
)
def test_failing_training_is_failed_and_stops_everything(site: Site, inject: str, words: str) -> None:
    (site.suite / "train.log").write_text("[Epoch 9, iter: 9] loss: 0.1\nRun successfully\n")
    site.edit_params("norm_train:train.py", f"norm_train:train.py --inject {inject}")
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert outcome.run.status is Status.FAILED
    assert words in outcome.output
    assert words in site.show(outcome.run)
    assert site.left_behind() == []
    statuses = {step: entry["status"] for step, entry in site.facts(outcome.run)["steps"].items()}
    assert statuses[TRAIN] == "failed"
    assert statuses[TRAIN.replace("train", "export").replace("norm_export", "norm_train")] == "blocked"


def test_nan_is_failed(site: Site) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject nan@1")
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert "loss.finite" in outcome.run.reason
    assert "nan" in outcome.run.reason
    assert site.left_behind() == []


def test_export_that_writes_nothing_is_failed(site: Site) -> None:
    site.edit_params("norm_export:tools/export_model.py", "norm_export:tools/export_model.py --inject nothing")
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert "did not write" in outcome.run.reason
    assert ".pdiparams" in outcome.run.reason
    assert site.left_behind() == []


def test_failing_leg_does_not_affect_other_legs(site: Site) -> None:
    site.edit_params("inference:deploy/infer.py", "inference:deploy/infer.py --inject exit@mkldnn")
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert "oneDNN cannot do this" in outcome.output
    with site.store() as store:
        legs = {key.leg: status for key, (status, _) in store.steps.leg_statuses(outcome.run.id).items()}
    assert sorted(status.value for status in legs.values()) == ["failed", "not_run", "pass"]


@pytest.mark.parametrize(
    ("inject", "words"),
    [
        ("drift@mkldnn", "parity.onednn"),
        pytest.param("pretend@mkldnn", "ran.engine", marks=pytest.mark.full),
        pytest.param("silent@mkldnn", "no evidence of execution", marks=pytest.mark.full),
    ],
)
def test_onednn_that_differs_or_does_not_run_is_failed(site: Site, inject: str, words: str) -> None:
    site.edit_params("inference:deploy/infer.py", f"inference:deploy/infer.py --inject {inject}")
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert words in outcome.run.reason


@pytest.mark.full
def test_hang_ends_at_the_deadline(site: Site) -> None:
    site.configure_policy(step_deadline_minutes=0.1)
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@3")
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert outcome.run.status is Status.FAILED
    assert "6 s" in outcome.run.reason
    assert site.left_behind() == []


def test_a_run_ends_with_its_budget(site: Site) -> None:
    site.configure_suite(budget_minutes=0.1)
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@0")
    outcome = site.run()
    # The budget ended it long before a rank could be seen to hang: that is not the model's failure.
    assert outcome.code == 5, outcome.output
    assert outcome.run.status is Status.INFRA_FAILURE
    assert "the run's budget of 6 s is used up" in outcome.run.reason
    assert site.left_behind() == []
