"""Every wrong input ends with one clear message, in the output and in `tipcflow show`; the right status, never a
pass; and nothing left on any node."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.certify import Outcome, Site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import FailureClass, Status
from tipcflow.domain.run_documents import FailuresDocument

pytestmark = pytest.mark.cluster


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    return Site(tmp_path, nodes)


@pytest.fixture
def own_site(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> Site:
    """A site with nodes that a test may break."""
    return Site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=Path(sys.executable)))


def assert_ends(site: Site, outcome: Outcome, status: Status, *words: str) -> None:
    """The status, its exit code, the words in both places, and nothing left behind."""
    assert outcome.run.status is status, outcome.output
    assert outcome.code == {Status.CONFIG_ERROR: 2, Status.INFRA_FAILURE: 5, Status.FAILED: 1}[status]
    assert outcome.stdout.splitlines()[-1] == status.value
    shown = site.show(outcome.run)
    for word in words:
        assert word in outcome.output
        assert word in shown
    assert "Traceback" not in outcome.output
    assert site.left_behind() == []


def failure_of(site: Site, outcome: Outcome) -> tuple[FailureClass, str]:
    """The class and the root cause of a run that ended before its first step."""
    with site.store() as store:
        document = store.documents.get(outcome.run.id, FailuresDocument)
    failure = document and document.before
    assert failure
    return failure.failure_class, failure.root_cause


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"suite_ref": "main"}, ("--suite-ref", "main")),
        ({"framework": "paddle paddle"}, ("--framework", "paddle paddle")),
        ({"params": "test_tipc/configs/toy/none.txt"}, ("no such params file", "none.txt")),
    ],
)
def test_invalid_argument_is_a_config_error(site: Site, options: dict[str, str], words: tuple[str, ...]) -> None:
    assert_ends(site, site.run(**options), Status.CONFIG_ERROR, *words)


def test_suite_ref_that_does_not_exist(site: Site) -> None:
    subprocess.run(["git", "init", "-q", str(site.suite)], check=True)
    git = ["git", "-C", str(site.suite), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    assert_ends(site, site.run(suite_ref="v9"), Status.CONFIG_ERROR, "no such ref", "'v9'")
    assert site.run(suite_ref="HEAD").code == 0


@pytest.mark.full
def test_missing_line_of_params_is_a_config_error(site: Site) -> None:
    site.edit_params("fpgm_train:null\n", "")
    assert_ends(site, site.run(), Status.CONFIG_ERROR, "train_infer_python.txt:")


@pytest.mark.full
def test_shifted_line_of_params_is_a_config_error(site: Site) -> None:
    site.edit_params("--use-gpu:True\nnull:null\n", "null:null\n--use-gpu:True\nnull:null\n")
    assert_ends(site, site.run(), Status.CONFIG_ERROR, "train_infer_python.txt:")


@pytest.mark.full
def test_every_leg_needs_a_device_that_the_cluster_lacks(site: Site) -> None:
    site.edit_params("--use-gpu:True|False", "--use-gpu:True")
    outcome = site.run(mode="whole_infer")
    assert_ends(site, outcome, Status.CONFIG_ERROR, "every leg needs a device", "local")


def test_fewer_nodes_than_the_file_wants(site: Site) -> None:
    site.edit_params("192.168.0.1,192.168.0.2;0,1", "192.168.0.1,192.168.0.2,192.168.0.3;0,1")
    assert_ends(site, site.run(), Status.CONFIG_ERROR, "3", "2")


@pytest.mark.full
def test_fewer_slots_than_the_file_wants(site: Site) -> None:
    site.configure_node("b", slots=1)
    assert_ends(site, site.run(), Status.CONFIG_ERROR, "slot", "b")


@pytest.mark.full
def test_wrong_key_in_the_cluster_file_is_refused(site: Site) -> None:
    site.configure_node("b", slotz=1)
    assert_ends(site, site.run(), Status.CONFIG_ERROR, "local.yaml:", "nodes.1.slotz", "slots")


@pytest.mark.full
def test_node_without_python_is_refused(site: Site) -> None:
    site.configure_node("b", python="/opt/nowhere/bin/python")
    outcome = site.run()
    assert_ends(site, outcome, Status.INFRA_FAILURE, "node b", "/opt/nowhere/bin/python", "no such interpreter")
    assert failure_of(site, outcome) == (FailureClass.ENVIRONMENT, "node b")


def test_cluster_without_the_framework_starts_nothing(site: Site) -> None:
    site.configure_suite(framework="torch")
    for name in ("a", "b"):
        site.configure_node(name, frameworks=["paddlepaddle"])
    outcome = site.run()
    assert_ends(site, outcome, Status.CONFIG_ERROR, "suite toy needs torch", "cluster local has no torch")


def test_node_without_paddle_is_refused(site: Site) -> None:
    site.configure_suite(framework="paddlepaddle")
    outcome = site.run()
    assert_ends(site, outcome, Status.INFRA_FAILURE, "node a", "has no paddlepaddle")
    assert failure_of(site, outcome) == (FailureClass.ENVIRONMENT, "node a")


@pytest.mark.full
def test_another_framework_than_requested_is_refused(site: Site, node_python: Path) -> None:
    site.configure_suite(framework="paddlepaddle")
    for name in ("a", "b"):
        site.configure_node(name, python=str(node_python))
    outcome = site.run(framework="paddlepaddle<3")
    assert_ends(site, outcome, Status.INFRA_FAILURE, "node a has paddlepaddle 3.3.1", "paddlepaddle<3")


@pytest.mark.full
def test_refused_key_is_an_infra_failure(site: Site, tmp_path: Path) -> None:
    key = tmp_path / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    site.configure_node("b", ssh__identity_file=str(key))
    assert_ends(site, site.run(), Status.INFRA_FAILURE, "node b", "refused")


@pytest.mark.full
def test_wrong_host_key_is_refused(own_site: Site) -> None:
    own_site.nodes.change_host_key("b")
    assert_ends(own_site, own_site.run(), Status.INFRA_FAILURE, "node b", "host key")


@pytest.mark.full
def test_unreachable_node_is_an_infra_failure(own_site: Site) -> None:
    own_site.nodes.cut("b")
    outcome = own_site.run()
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert outcome.code == 5
    assert "node b" in outcome.run.reason
    own_site.nodes.restore("b")
    assert own_site.left_behind() == []


def test_nodes_that_cannot_reach_each_other(own_site: Site) -> None:
    address = own_site.nodes.cluster.node("b").address
    own_site.nodes.exec("a", ["ip", "route", "add", "unreachable", f"{address}/32"])
    outcome = own_site.run()
    assert_ends(own_site, outcome, Status.INFRA_FAILURE, "node a cannot reach node b")


def test_full_disk_of_the_workspace_is_reported(own_site: Site) -> None:
    workspace = own_site.nodes.cluster.node("b").workspace
    own_site.nodes.exec("b", ["mkdir", "-p", workspace])
    own_site.nodes.exec("b", ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", workspace])
    assert_ends(own_site, own_site.run(), Status.INFRA_FAILURE, "node b", "disk", "full")


def test_path_without_a_python_interpreter_is_an_infra_failure(site: Site) -> None:
    site.configure_node("a", python="/bin/true")
    assert_ends(site, site.run(), Status.INFRA_FAILURE, "node a")


def test_unknown_log_format_is_refused(site: Site) -> None:
    site.configure_suite(log_format="tea-leaves")
    assert_ends(site, site.run(), Status.CONFIG_ERROR, "tea-leaves", "models")
