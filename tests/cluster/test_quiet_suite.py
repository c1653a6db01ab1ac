"""What a real Paddle training on two nodes did is decided by observation, where its suite prints nothing of it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.liars.lie import rewrite
from tests.support.quiet import EVAL, EXPORT, TRAIN, configure_quiet, quiet_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import CheckResult, Status

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
INIT = "dist.init_parallel_env()\n"
LEAVES = 'if os.environ["PADDLE_TRAINER_ID"] in "23":\n    sys.exit(0)\n'
TWO_ALONE = """os.environ["PADDLE_TRAINERS_NUM"] = "2"
ends = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[:2]
os.environ["PADDLE_TRAINER_ENDPOINTS"] = ",".join(ends)
"""
WORKS = "until = time.time() + 12\nwhile time.time() < until:\n    paddle.rand([100, 100]).numpy()\n"
WRONG = '{evaluate(model) * 0.1:.5f}", flush=True)\n    sys'


@pytest.fixture
def site(
    make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> certify.Site:
    monkeypatch.setattr(certify, "DEADLINE_S", 500)
    return quiet_site(tmp_path, make_nodes(python=node_python))


def check_of(site: certify.Site, outcome: certify.Outcome, name: str, step: str) -> CheckResult:
    with site.store() as store:
        found = [one for one in store.checks.results(outcome.run.id) if (one.check, one.step) == (name, step)]
    assert found, site.show(outcome.run)
    return found[0]


def failed(site: certify.Site, name: str, step: str) -> CheckResult:
    """The result of a check of a run that must be `failed` because of it."""
    outcome = site.run()
    result = check_of(site, outcome, name, step)
    assert (result.status, outcome.run.status) == (Status.FAILED, Status.FAILED), (result, outcome.output)
    return result


def test_an_honest_training_is_green(site: certify.Site) -> None:
    outcome = site.run()
    group = check_of(site, outcome, "ran.group", TRAIN)
    assert (group.status, group.reason) == (Status.PASS, "4 of 4 ranks joined one group over gloo"), group
    seen = [rank for rank in group.values["observed"] if rank["peers"]]
    assert {rank["node"] for rank in seen} == {"a", "b"}, group
    assert (
        check_of(site, outcome, "ran.weights", TRAIN).reason == "20 steps of an optimizer changed the parameters"
    )
    assert (
        check_of(site, outcome, "ran.weights", EXPORT).reason == "the export contains parameters of the training"
    )
    assert check_of(site, outcome, "accuracy.evaluation", EVAL).status is Status.PASS
    assert outcome.run.status is Status.PASS, outcome.run.reason


@pytest.mark.full
def test_node_b_leaves_at_once(site: certify.Site) -> None:
    rewrite(site.suite / "train.py", INIT, f"{LEAVES}{TWO_ALONE}{WORKS}{INIT}")
    group = failed(site, "ran.group", TRAIN)
    # On a slow machine the import of Paddle takes up most of both lifetimes.
    assert re.search(
        r"rank 2 on b \(and 1 more\) exited after|ranks on node a trained separately|a group of 2", group.reason
    ), group


@pytest.mark.full
@pytest.mark.parametrize("probe", [True, False])
def test_four_separate_ranks_fail_the_group_check(site: certify.Site, probe: bool) -> None:
    # Without the probe the connections show the training, if it is long enough to be observed.
    rewrite(site.suite / "train.py", INIT, "" if probe else WORKS)
    configure_quiet(site, probe=probe)
    group = failed(site, "ran.group", TRAIN)
    pattern = "ranks 0, 1, 2, 3 trained without a process group: 20 steps" if probe else "trained separately"
    assert pattern in group.reason, group


def test_untrained_export_and_bad_evaluation_are_found(site: certify.Site) -> None:
    rewrite(site.suite / "tools" / "export_model.py", "model.set_state_dict(paddle.load(args.pretrained))\n", "")
    rewrite(site.suite / "train.py", '{evaluate(model):.5f}", flush=True)\n    sys', WRONG)
    export = failed(site, "ran.weights", EXPORT)
    assert export.reason == "the export has no parameter of the training and loaded no weights: untrained"
    with site.store() as store:
        results = {one.check: one for one in store.checks.results(site.latest().id)}
    assert results["accuracy.evaluation"].status is Status.FAILED, results["accuracy.evaluation"]
    assert "the training's own" in results["accuracy.evaluation"].reason


@pytest.mark.full
def test_a_training_that_changes_nothing(site: certify.Site) -> None:
    rewrite(site.suite / "train.py", "Momentum(0.05", "Momentum(0.0")
    weights = failed(site, "ran.weights", TRAIN)
    assert weights.reason == "20 steps of an optimizer changed no parameter"
