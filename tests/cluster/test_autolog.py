"""The sample suite on nodes whose environment has AutoLog, installed by hash as `make demo` installs it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.samples.site import HOME, sample_site

from devcluster.install.wheels import VARIABLE, add_autolog
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.domain.run_documents import ReportersDocument
from tipcflow.install.uv import require_uv

SUITE = "mobilenet_v3_small"
WHEELS = os.environ.get("TIPC_WHEELS", "")
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not WHEELS, reason="TIPC_WHEELS names no folder"),
]


@pytest.fixture
def autolog_python(node_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter of an environment with the packages of the CPU nodes' environment, and AutoLog."""
    monkeypatch.setenv(VARIABLE, WHEELS)
    subprocess.run([node_python, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=60)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (shared,) = node_python.parents[1].glob("lib/python*/site-packages")
    (site / "shared.pth").write_text(f"{shared}\n")
    python = tmp_path / "env" / "bin" / "python"
    lines: list[str] = []
    requirements = certify.ROOT / "requirements" / "node-autolog.txt"
    assert add_autolog(require_uv(HOME, lines.append), python, requirements, lines.append), lines
    assert lines[-1] == "AutoLog 1.2.0 installed: the sample suite uses it"
    return python


def test_inference_is_reported_by_the_real_autolog(
    make_nodes: Callable[..., LocalNodes], autolog_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certify, "DEADLINE_S", 500)
    site = sample_site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=autolog_python), SUITE)
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
