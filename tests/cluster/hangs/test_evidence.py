"""Runs whose steps all end with exit code 0 and lack evidence, on two nodes with real sshd: none is green."""

import json
from pathlib import Path

import pytest
from tests.support.certify import Site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.domain.run_documents import ExpectedDocument

pytestmark = pytest.mark.cluster


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    return Site(tmp_path, nodes)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "norm_train:train.py",
            "norm_train:train.py --inject leave@3",
            "rank 3 on node b logged 2 of 10 iterations",
        ),
        (
            "norm_train:train.py",
            "norm_train:train.py --inject leave-all",
            "logged 2 of 5 iterations in the last epoch",
        ),
        ("norm_train:train.py", "norm_train:train.py --inject empty", "latest.pdparams on node a is empty"),
        (
            "eval:train.py --test-only",
            "eval:train.py --test-only --inject quiet",
            "the evaluation printed no metric",
        ),
        ("norm_train:train.py", "norm_train:train.py --inject mute@3", "rank 3"),
    ],
)
def test_run_without_evidence_fails_and_names_the_missing_evidence(
    site: Site, old: str, new: str, words: str
) -> None:
    site.edit_params(old, new)
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    assert outcome.run.status is Status.FAILED
    assert words in outcome.run.reason
    certificate = json.loads((site.home / "runs" / outcome.run.id / "certificate.json").read_text())
    assert "missing" in {piece["state"] for piece in certificate["evidence"]}
    with site.store() as store:
        assert store.documents.get(outcome.run.id, ExpectedDocument)
