"""Every wrong input ends with one clear message, in the output and in `tipcflow show`; the right status, never a
pass; and nothing left on any node."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.certify import Desk, Outcome

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status

pytestmark = pytest.mark.cluster


@pytest.fixture
def desk(nodes: LocalNodes, tmp_path: Path) -> Desk:
    return Desk(tmp_path, nodes)


@pytest.fixture
def own_desk(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> Desk:
    """A desk with nodes that a test may break."""
    return Desk(tmp_path / "desk", make_nodes(tmp_path / "nodes", python=Path(sys.executable)))


def assert_ends(desk: Desk, outcome: Outcome, status: Status, *words: str) -> None:
    """The status, its exit code, the words in both places, and nothing left behind."""
    assert outcome.run.status is status, outcome.output
    assert outcome.code == {Status.CONFIG_ERROR: 2, Status.INFRA_FAILURE: 2, Status.FAILED: 1}[status]
    assert outcome.stdout.splitlines()[-1] == status.value
    shown = desk.show(outcome.run)
    for word in words:
        assert word in outcome.output
        assert word in shown
    assert "Traceback" not in outcome.output
    assert desk.left_behind() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "lite_train"}, ("lite_train", "lite_train_lite_infer", "whole_infer")),
        ({"suite": "PaddleNothing"}, ("unknown suite", "PaddleNothing", "toy")),
        ({"cluster": "moon"}, ("unknown cluster", "moon", "local")),
        ({"suite_ref": "main"}, ("--suite-ref", "main")),
        ({"framework": "paddle paddle"}, ("--framework", "paddle paddle")),
        ({"policy": "lax"}, ("unknown policy", "lax", "weekly")),
        ({"params": "test_tipc/configs/toy/none.txt"}, ("no such params file", "none.txt")),
    ],
)
def test_wrong_argument(desk: Desk, options: dict[str, str], words: tuple[str, ...]) -> None:
    assert_ends(desk, desk.run(**options), Status.CONFIG_ERROR, *words)


def test_suite_ref_that_does_not_exist(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q", str(desk.suite)], check=True)
    git = ["git", "-C", str(desk.suite), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    assert_ends(desk, desk.run(suite_ref="v9"), Status.CONFIG_ERROR, "no such ref", "'v9'")
    assert desk.run(suite_ref="HEAD").code == 0


@pytest.mark.full
def test_missing_line(desk: Desk) -> None:
    desk.edit_params("fpgm_train:null\n", "")
    assert_ends(desk, desk.run(), Status.CONFIG_ERROR, "train_infer_python.txt:")


@pytest.mark.full
def test_shifted_line(desk: Desk) -> None:
    desk.edit_params("--use-gpu:True\nnull:null\n", "null:null\n--use-gpu:True\nnull:null\n")
    assert_ends(desk, desk.run(), Status.CONFIG_ERROR, "train_infer_python.txt:")


@pytest.mark.full
def test_every_leg_needs_a_device_that_the_cluster_lacks(desk: Desk) -> None:
    desk.edit_params("--use-gpu:True|False", "--use-gpu:True")
    outcome = desk.run(mode="whole_infer")
    assert_ends(desk, outcome, Status.CONFIG_ERROR, "every leg needs a device", "local")


def test_fewer_nodes_than_the_file_wants(desk: Desk) -> None:
    desk.edit_params("192.168.0.1,192.168.0.2;0,1", "192.168.0.1,192.168.0.2,192.168.0.3;0,1")
    assert_ends(desk, desk.run(), Status.CONFIG_ERROR, "3", "2")


@pytest.mark.full
def test_fewer_slots_than_the_file_wants(desk: Desk) -> None:
    desk.configure_node("b", slots=1)
    assert_ends(desk, desk.run(), Status.CONFIG_ERROR, "slot", "b")


@pytest.mark.full
def test_wrong_key_in_the_cluster_file(desk: Desk) -> None:
    desk.configure_node("b", slotz=1)
    assert_ends(desk, desk.run(), Status.CONFIG_ERROR, "local.yaml:", "nodes.1.slotz", "slots")


@pytest.mark.full
def test_node_without_python(desk: Desk) -> None:
    desk.configure_node("b", python="/opt/nowhere/bin/python")
    assert_ends(desk, desk.run(), Status.INFRA_FAILURE, "node b", "/opt/nowhere/bin/python", "no such interpreter")


def test_node_without_paddle(desk: Desk) -> None:
    desk.configure_suite(framework="paddlepaddle")
    assert_ends(desk, desk.run(), Status.INFRA_FAILURE, "node a", "has no paddlepaddle")


@pytest.mark.full
def test_other_framework_than_asked_for(desk: Desk, node_python: Path) -> None:
    desk.configure_suite(framework="paddlepaddle")
    for name in ("a", "b"):
        desk.configure_node(name, python=str(node_python))
    outcome = desk.run(framework="paddlepaddle==2.6.2")
    assert_ends(desk, outcome, Status.INFRA_FAILURE, "node a has paddlepaddle 3.3.1", "paddlepaddle==2.6.2")


@pytest.mark.full
def test_key_refused(desk: Desk, tmp_path: Path) -> None:
    key = tmp_path / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    desk.configure_node("b", ssh__identity_file=str(key))
    assert_ends(desk, desk.run(), Status.INFRA_FAILURE, "node b", "refused")


@pytest.mark.full
def test_wrong_host_key(own_desk: Desk) -> None:
    own_desk.nodes.change_host_key("b")
    assert_ends(own_desk, own_desk.run(), Status.INFRA_FAILURE, "node b", "host key")


@pytest.mark.full
def test_unreachable_node(own_desk: Desk) -> None:
    own_desk.nodes.cut("b")
    outcome = own_desk.run()
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert outcome.code == 2
    assert "node b" in outcome.run.reason
    own_desk.nodes.restore("b")
    assert own_desk.left_behind() == []


def test_nodes_that_cannot_reach_each_other(own_desk: Desk) -> None:
    address = own_desk.nodes.cluster.node("b").address
    own_desk.nodes.exec("a", ["ip", "route", "add", "unreachable", f"{address}/32"])
    outcome = own_desk.run()
    assert_ends(own_desk, outcome, Status.INFRA_FAILURE, "node a cannot reach node b")


def test_disk_full_in_the_workspace(own_desk: Desk) -> None:
    workspace = own_desk.nodes.cluster.node("b").workspace
    own_desk.nodes.exec("b", ["mkdir", "-p", workspace])
    own_desk.nodes.exec("b", ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", workspace])
    assert_ends(own_desk, own_desk.run(), Status.INFRA_FAILURE, "node b", "disk", "full")


def test_python_that_is_none(desk: Desk) -> None:
    desk.configure_node("a", python="/bin/true")
    assert_ends(desk, desk.run(), Status.INFRA_FAILURE, "node a")


def test_unknown_log_format(desk: Desk) -> None:
    desk.configure_suite(log_format="tea-leaves")
    assert_ends(desk, desk.run(), Status.CONFIG_ERROR, "tea-leaves", "models")
