"""Paddle's launcher with `--master` trains what it trains with `--ips`: on two nodes with two ranks each."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.support import certify
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import StepKind

pytestmark = [pytest.mark.cluster, pytest.mark.full]
SUITE = "mobilenet_v3_small"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_fleet_infer_python.txt"


@pytest.fixture
def site(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> certify.Site:
    """The sample suite, one epoch and the training alone; the cluster `newer` starts it with `--master`."""
    monkeypatch.setattr(certify, "DEADLINE_S", 600)
    site = sample_site(tmp_path, make_nodes(python=node_python), SUITE)
    params = site.suite / PARAMS
    text = params.read_text().replace("lite_train_lite_infer=5", "lite_train_lite_infer=1")
    text = text.replace("eval:train.py --test-only", "eval:null").replace(
        "norm_export:tools", "norm_export:null\n#"
    )
    params.write_text("\n".join(line for line in text.splitlines() if not line.startswith("#/")) + "\n")
    cluster = yaml.safe_load(site.cluster_file.read_text())
    (site.configs / "clusters" / "newer.yaml").write_text(
        yaml.safe_dump({**cluster, "name": "newer", "launch": "master"})
    )
    return site


def losses(site: certify.Site, cluster: str) -> tuple[str, dict[tuple[object, ...], float]]:
    """The training's command on the first node, and every rank's losses."""
    outcome = site.run(params=PARAMS, suite=SUITE, cluster=cluster)
    with site.store() as store:
        train = next(step for step in store.plans.get(outcome.run.id).steps if step.kind is StepKind.TRAIN)
        assert store.steps.statuses(outcome.run.id)[train.id][0] == "pass", outcome.output
        found = store.measurements.of(outcome.run.id, metric="loss")
    return train.commands["a"].text, {(one.node, one.rank, one.ordinal): one.value for one in found}


def test_both_ways_give_the_same_losses_bit_for_bit(site: certify.Site) -> None:
    text, usual = losses(site, "local")
    assert "--ips=" in text
    assert {rank for _, rank, _ in usual} == {0, 1, 2, 3}
    text, newer = losses(site, "newer")
    assert "--master=" in text
    assert "--ips=" not in text
    assert newer == usual
