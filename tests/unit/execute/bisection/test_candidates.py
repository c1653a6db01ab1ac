"""Which regressions and failures are bisected without a user."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.bisections.deployment import DAY, Deployment, commit

from tipcflow.domain import Status
from tipcflow.domain.alert.entry import AlertState
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.execute.alerts.decide import set_state
from tipcflow.execute.bisection.candidates import Wanted, wanted_bisections


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    with Deployment(tmp_path) as made:
        made.policy(start="all")
        yield made


def wanted(deployment: Deployment, lines: list[str] | None = None, *, days: float = 0) -> list[Wanted]:
    report: list[str] = [] if lines is None else lines
    now = deployment.now + days * DAY
    return wanted_bisections(deployment.store, deployment.configs, now, report.append)


def test_regression_is_searched_between_its_good_and_bad_commits(deployment: Deployment) -> None:
    bad = deployment.regression("a")
    (made,) = wanted(deployment)
    assert (made.run, made.title) == (bad, "alert 1 of sample/a/train in lite_train_lite_infer")
    assert made.conf == {
        "suite": "sample",
        "params_file": "test_tipc/configs/a/train.txt",
        "mode": "lite_train_lite_infer",
        "cluster": "local",
        "policy": "pr",
        "good": commit(1),
        "bad": commit(2),
        "metric": "batch_cost",
        "step": "v/train",
        "max_runs": 30,
        "budget_minutes": 240.0,
        "parallel": 1,
        "run": bad,
    }


def test_failure_is_searched_from_its_first_failed_run(deployment: Deployment) -> None:
    first = deployment.failure("a", Status.FAILED)
    deployment.run("a", Status.FAILED)
    (made,) = wanted(deployment)
    assert (made.run, made.conf["metric"], made.conf["bad"]) == (first, "failure", commit(2))
    deployment.policy(start="regressions")
    assert wanted(deployment) == []


def test_alerts_with_one_cause_have_one_bisection(deployment: Deployment) -> None:
    for name in ("a", "b"):
        deployment.good(name, suite_commit="a" * 40)
    first = deployment.regressed("a", suite_commit="b" * 40)
    other = deployment.regressed("b", suite_commit="b" * 40)
    alerts = deployment.store.tracked_alerts.all()
    assert {(alert.first, alert.group) for alert in alerts} == {(first, 1), (other, 1)}
    assert [each.run for each in wanted(deployment)] == [first]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"suite_commit": commit(1)}, "the last good run has the same suite commit, 01010101"),
        ({"suite_commit": ""}, "run a-02 is not of a commit"),
        ({"suite_commit": f"{commit(9)}+changes"}, "run a-02 is not of a commit"),
        ({"framework": "paddle 3.4"}, "the framework changed, too: paddle 3.3 to paddle 3.4"),
        ({"cluster": "gone"}, "unknown cluster"),
    ],
)
def test_problem_that_commits_cannot_explain_is_named(
    deployment: Deployment, fields: dict[str, str], words: str
) -> None:
    deployment.regression("a", **fields)
    lines: list[str] = []
    assert wanted(deployment, lines) == []
    assert [words in line for line in lines] == [True]
    assert lines[0].startswith("alert 1 of sample/a/train in lite_train_lite_infer is not bisected: ")


def test_chain_that_never_passed_is_named(deployment: Deployment) -> None:
    deployment.run("a", Status.FAILED)
    lines: list[str] = []
    assert wanted(deployment, lines) == []
    assert lines[0].endswith("since run a-01 is not bisected: no earlier run passed")


def test_closed_ended_old_and_searched_problems_are_left_out(deployment: Deployment) -> None:
    bad = deployment.regression("a")
    assert len(wanted(deployment)) == 1
    assert wanted(deployment, days=20) == []
    deployment.store.documents.put(bad, BisectionDocument(sentence="undecided"))
    assert wanted(deployment) == []
    deployment.regression("b")
    (other,) = wanted(deployment)
    alert = deployment.store.tracked_alerts.get(2)
    assert alert.first == other.run
    set_state(deployment.store, [alert], AlertState.EXPECTED, who="ann", why="intended")
    assert wanted(deployment) == []
    deployment.regression("c")
    deployment.good("c")
    assert wanted(deployment) == [], "the level returned"
