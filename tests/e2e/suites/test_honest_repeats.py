"""Honest runs of a real training on two nodes are green, again and again: the sample suite and Step6, unmodified.

A run on a node that is slower than usual is an `infra_failure`, which a user repeats; docs/suites.md has the
results of such runs on an idle and on a busy machine.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import FLEET, NODE_PYTHON, SUITES, WEIGHTS, PublicSite
from tests.support.certify import ROOT

from devcluster.local_nodes.nodes import local_nodes
from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.quiet, pytest.mark.timeout(5400)]
RUNS = 20


@pytest.fixture
def site(tmp_path: Path) -> Iterator[PublicSite]:
    with local_nodes(tmp_path / "nodes", python=NODE_PYTHON) as nodes:
        made = PublicSite(tmp_path / "site", nodes)
        made.configure("mobilenet_v3_small", folder=str(ROOT / "examples" / "mobilenet_v3_small"))
        made.serve(WEIGHTS, b"unused")
        yield made


@pytest.mark.parametrize("suite", ["mobilenet_v3_small", "models_step6"])
def test_twenty_honest_runs_are_green(site: PublicSite, suite: str) -> None:
    if suite == "models_step6" and not (SUITES / "models").is_dir():
        pytest.skip("TIPC_SUITES names no folder with clones of the public suites")
    for number in range(RUNS):
        outcome = site.run_on_healthy_node(suite, FLEET)
        assert outcome.run.status in (Status.PASS, Status.IMPROVEMENT), (number, outcome.output)
