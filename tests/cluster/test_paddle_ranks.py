"""A rank of a real Paddle training that hangs, or leaves without a word, is `failed` with its rank."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.faults.case import STRICT
from tests.support.faults.gate import LOOP

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import FailureClass, Status

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
BEGIN = """
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
shared = paddle.ones([4])
"""
STEP = """
        if rank == 3 and epoch == 1 and iteration == 3:
            {what}
        dist.all_reduce(shared)
"""


@pytest.fixture
def site(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> certify.Site:
    monkeypatch.setattr(certify, "DEADLINE_S", 300)
    made = certify.Site(tmp_path, make_nodes(python=node_python))
    made.configure_policy(**{**STRICT, "retries": {}})
    shutil.rmtree(made.suite / "paddle")  # the real one instead
    return made


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        pytest.param("time.sleep(3600)", FailureClass.HANG, marks=pytest.mark.full),
        pytest.param("sys.exit(1)", FailureClass.CODE_ERROR, marks=pytest.mark.full),
        ("os._exit(0)", FailureClass.CODE_ERROR),
    ],
)
def test_failing_rank_is_the_root_cause_and_is_not_retried(
    site: certify.Site, what: str, kind: FailureClass
) -> None:
    train = site.suite / "train.py"
    text = train.read_text().replace("generator = random", f"{BEGIN}generator = random", 1)
    train.write_text(text.replace(LOOP, LOOP + STEP.format(what=what).lstrip("\n"), 1))
    outcome = site.run()
    with site.store() as store:
        failure = store.history.facts(outcome.run.id).failures[TRAIN]
        attempts = [one for one in store.attempts.of(outcome.run.id) if one.step == TRAIN]
    assert (failure.failure_class, failure.root_cause) == (kind, "node b, rank 3"), outcome.output
    assert outcome.run.status is Status.FAILED
    assert len(attempts) == 1
