"""The sample suite on nodes whose environment has AutoLog, installed by hash as `make demo` installs it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.samples.site import HOME, sample_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.domain.run_documents import ReportersDocument

SUITE = "mobilenet_v3_small"
PYTHON = HOME / "envs" / "node-autolog" / "bin" / "python"
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not PYTHON.exists(), reason="no .tipcflow/envs/node-autolog: tools/node_autolog.sh makes it"
    ),
]


def test_inference_is_reported_by_the_real_autolog(
    make_nodes: Callable[..., LocalNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certify, "DEADLINE_S", 500)
    site = sample_site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=PYTHON), SUITE)
    outcome = site.run(params=f"test_tipc/configs/{SUITE}/train_infer_python.txt", suite=SUITE)
    assert outcome.code == 0, outcome.output
    assert outcome.run.status is Status.PASS
    with site.store() as store:
        reporters = store.documents.get(outcome.run.id, ReportersDocument)
        statuses = store.steps.leg_statuses(outcome.run.id)
    assert reporters is not None
    passed = {key for key, value in statuses.items() if value[0] is Status.PASS}
    assert len(passed) > 1
    assert reporters.root == dict.fromkeys(passed, "auto_log 1.2.0")
