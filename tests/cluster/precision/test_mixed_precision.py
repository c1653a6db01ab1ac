"""The sample suite's fleet chain with `--auto-cast:fp32|amp` on two CPU nodes: fp32 trains, amp is not run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status, StepKind

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900)]

SUITE = "mobilenet_v3_small"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_amp_infer_python_linux_gpu_cpu.txt"


@pytest.fixture
def site(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> certify.Site:
    """An installation whose suite `mobilenet_v3_small` is a copy of the shipped one."""
    monkeypatch.setattr(certify, "DEADLINE_S", 800)
    return sample_site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=node_python), SUITE)


def test_amp_is_not_run_on_cpu_nodes_and_fp32_is_proven(site: certify.Site) -> None:
    outcome = site.run(params=PARAMS, suite=SUITE)
    assert outcome.code == 0, outcome.output
    assert outcome.run.status is Status.PASS
    with site.store() as store:
        plan = store.plans.get(outcome.run.id)
        statuses = store.steps.statuses(outcome.run.id)
        results = store.checks.results(outcome.run.id)
    trains = {step.id: step for step in plan.steps if step.kind is StepKind.TRAIN}
    mixed, plain = (next(name for name in trains if f"autocast_{word}" in name) for word in ("amp", "fp32"))
    reason = "node a has no GPU: on CPUs, Paddle ignores mixed precision (amp) and trains in fp32"
    assert statuses[mixed] == ("not_run", reason)
    assert statuses[plain][0] == "pass", statuses
    training = [result for result in results if result.check == "ran.training"]
    assert [(result.step, result.status, result.reason) for result in training] == [
        (plain, Status.PASS, "trained with device cpu and precision fp32")
    ]
    assert site.left_behind() == []
