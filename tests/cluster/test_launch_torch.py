"""Gangs of PyTorch over gloo: torchrun and --init-method train on two nodes, with the locked environment."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify

from devcluster.install.environment import is_ready
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Run, StepKind

HOME = certify.ROOT / ".tipcflow"
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not is_ready(HOME, "node-torch"), reason="no .tipcflow/envs/node-torch: tools/node_torch.sh makes it"
    ),
]


@pytest.fixture
def site(make_nodes: Callable[..., LocalNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> certify.Site:
    """The toy suite with a training that is none: on nodes whose environment has PyTorch and no Paddle."""
    monkeypatch.setattr(certify, "DEADLINE_S", 500)
    site = certify.Site(tmp_path, make_nodes(python=HOME / "envs" / "node-torch" / "bin" / "python"))
    shutil.move(site.suite / "train_torch.py", site.suite / "train.py")
    shutil.rmtree(site.suite / "paddle")
    site.edit_params("eval:train.py --test-only", "eval:null")
    return site


def losses(site: certify.Site, run: Run) -> dict[str, list[float]]:
    """Node -> the losses that its first rank printed, each a mean over all ranks."""
    with site.store() as store:
        train = next(step for step in store.plans.get(run.id).steps if step.kind is StepKind.TRAIN)
        status, reason = store.steps.statuses(run.id)[train.id]
        assert status == "pass", reason
        found = sorted(store.measurements.of(run.id, metric="loss"), key=lambda one: one.ordinal)
    return {node: [one.value for one in found if one.node == node] for node in ("a", "b")}


@pytest.mark.parametrize(
    ("launch", "ids", "world", "words"),
    [
        ("torchrun", "0,1", 4, "-m torch.distributed.run --nnodes=2"),
        ("init_method", "0", 2, "--init-method tcp://"),
    ],
)
def test_a_gang_of_pytorch_trains(site: certify.Site, launch: str, ids: str, world: int, words: str) -> None:
    site.configure_suite(framework="torch", launch=launch)
    site.edit_params("192.168.0.1,192.168.0.2;0,1", f"192.168.0.1,192.168.0.2;{ids}")
    outcome = site.run("--framework", "torch==2.13.0")
    with site.store() as store:
        plan = store.plans.get(outcome.run.id)
    train = next(step for step in plan.steps if step.kind is StepKind.TRAIN)
    assert all(words in command.shell for command in train.commands.values()), train.commands
    report = losses(site, outcome.run)
    assert len(report["a"]) == 10
    assert report["a"] == report["b"], "gloo has averaged what both nodes print"
    assert report["a"][-1] < report["a"][0] / 2
    log = (site.home / "runs" / outcome.run.id).glob("*/a/logs/main.log*")
    assert any(f"rank 0 of {world}, backend gloo" in path.read_text() for path in log if path.suffix != ".gz")
    assert site.left_behind() == []
