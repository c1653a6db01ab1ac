"""`tipcflow run` on nodes that Slurm allocates."""

import json
import re
import signal
from pathlib import Path

import pytest
from tests.support.slurm import SlurmSite

from tipcflow.cli.doctor.nodes import check_nodes
from tipcflow.domain import Status
from tipcflow.domain.run_documents import ClusterDocument, LeaseDocument
from tipcflow.execute.allocation.document import AllocationDocument

pytestmark = [pytest.mark.slurm, pytest.mark.fast]


def test_run_passes_on_allocated_nodes_and_leaves_nothing(site: SlurmSite) -> None:
    done = site.run()
    assert done.code == 0, done.output
    run = done.run.id
    assert re.search(r"Slurm job \d+ has nodes n\[1-2\]", done.output)
    with site.store() as store:
        allocation, cluster = (
            store.documents.get(run, AllocationDocument),
            store.documents.get(run, ClusterDocument),
        )
        lease = store.documents.get(run, LeaseDocument)
        losses = store.measurements.of(run, metric="loss")
        assert {(loss.node, loss.rank) for loss in losses} == {("n1", 0), ("n1", 1), ("n2", 2), ("n2", 3)}
        assert store.leases.all() == []
    assert allocation is not None
    assert cluster is not None
    assert lease is not None
    assert allocation.name == f"tipc-{run}-1"
    steps = [node.slurm.job for node in cluster.root.nodes if node.slurm]
    assert steps == [allocation.job, allocation.job]
    assert [node.address for node in cluster.root.nodes] == ["127.0.0.11", "127.0.0.12"]
    assert lease.fence > 1_700_000_000, "the start of the allocation"
    site.slurm.await_idle()
    assert site.left_behind() == []
    assert not list(Path(site.slurm.folder).glob(f"work/*/runs/{run}*")), "the run's folders"
    certificate = json.loads((site.home / "runs" / run / "certificate.json").read_text())
    assert certificate["verdict"]["status"] == "pass"


def test_constraint_chooses_the_nodes_with_a_feature(site: SlurmSite) -> None:
    site.configure_cluster(constraint="a")
    done = site.run()
    assert done.code == 0, done.output
    assert re.search(r"Slurm job \d+ has nodes n\[3-4\]", done.output)


def test_ranks_see_no_launcher_of_slurm(site: SlurmSite) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.4")
    seen: list[set[str]] = []
    done = site.run_and(site.training, lambda _: seen.append(site.environment_of_training()))
    assert done.code == 0, done.output
    assert {name for name in seen[0] if name.startswith(("SLURM", "PMI"))} <= {"SLURM_JOB_ID", "SLURM_CONF"}


def test_ctrl_c_cancels_the_run_and_ends_the_allocation(site: SlurmSite) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.5")
    done = site.interrupt(site.training, signal.SIGINT)
    assert (done.code, done.run.status) == (3, Status.CANCELLED), done.output
    site.slurm.await_idle()
    assert site.left_behind() == []


def test_ctrl_c_in_the_queue_withdraws_the_request(site: SlurmSite) -> None:
    with site.slurm.occupied():
        done = site.interrupt(lambda: "PENDING" in site.slurm.jobs().values(), signal.SIGINT)
        assert (done.code, done.run.status) == (3, Status.CANCELLED), done.output
        assert list(site.slurm.jobs().values()) == ["RUNNING"]


def test_doctor_checks_the_login_node(site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site.slurm.occupied():
        (found,) = check_nodes(str(site.cluster_file), site.configs)
    assert (found.where, found.ok) == ("login node", True)
    assert re.fullmatch(r"\d+\.\d+\S*, 1 job of the user in the queue", found.text)
    site.replace_program(tmp_path / "bin", "squeue", "echo 'slurm_load_jobs error' >&2; exit 1")
    monkeypatch.setenv("PATH", site.env["PATH"])
    (found,) = check_nodes(str(site.cluster_file), site.configs)
    assert not found.ok
    assert found.text == "Slurm could not list the user's jobs: slurm_load_jobs error"
