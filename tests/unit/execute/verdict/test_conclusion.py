"""Whether a doubt blocks: by the run's policy, and never by hiding something else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import INFER, TRAIN, open_store, record_run

from tipcflow.config.policy import Policy
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run_documents import JudgementDocument, LeftoversDocument
from tipcflow.execute.verdict.conclusion import exit_code_of, is_neutral, run_status
from tipcflow.store import Store

DOUBT = CheckResult(check="speed.ips", status=Status.UNCONFIRMED, reason="slower", step=TRAIN)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def ended(store: Store, status: Status = Status.UNCONFIRMED, *, rule: Any = "neutral") -> Any:
    run = record_run(store, status=status)
    if rule:
        store.documents.put(run.id, PolicyDocument(Policy(name="p", unconfirmed=rule)))
    store.checks.replace(run.id, [DOUBT])
    return run


def test_a_neutral_unconfirmed_run_does_not_block(store: Store) -> None:
    run = ended(store)
    assert is_neutral(store, run)
    assert exit_code_of(store, run) == 0
    assert store.history.accepted(run.chain, run.mode, run.environment) == [], "and joins no history"


@pytest.mark.parametrize(("rule", "code"), [("fail", 4), (None, 4)])
def test_otherwise_an_unconfirmed_result_blocks(store: Store, rule: Any, code: int) -> None:
    run = ended(store, rule=rule)
    assert not is_neutral(store, run)
    assert exit_code_of(store, run) == code


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.PASS, 0),
        (Status.REGRESSION, 1),
        (Status.FAILED, 1),
        (Status.INFRA_FAILURE, 5),
        (Status.CANCELLED, 3),
    ],
)
def test_no_other_status_is_neutral(store: Store, status: Status, code: int) -> None:
    run = ended(store, status)
    assert not is_neutral(store, run)
    assert exit_code_of(store, run) == code


def test_leftovers_block_an_unconfirmed_run(store: Store) -> None:
    run = ended(store)
    store.documents.put(run.id, LeftoversDocument(("2 processes were left on node-a",)))
    assert exit_code_of(store, run) == 4
    store.documents.put(run.id, LeftoversDocument())
    assert exit_code_of(store, run) == 0
    store.steps.set(run.id, INFER, Status.INFRA_FAILURE, "node-a was lost")
    assert exit_code_of(store, run) == 4
    store.steps.set(run.id, INFER, Status.PASS)
    degraded = CheckResult(check="node_health", status=Status.INFRA_FAILURE, reason="node-a was slow")
    store.checks.replace(run.id, [DOUBT, degraded])
    assert exit_code_of(store, run) == 4
    store.checks.replace(run.id, [DOUBT, degraded.model_copy(update={"gating": False})])
    assert exit_code_of(store, run) == 0


@pytest.mark.parametrize("word", ["pass", "ignore", "", True])
def test_a_policy_never_maps_unconfirmed_to_a_pass(word: Any) -> None:
    with pytest.raises(ValueError, match="unconfirmed"):
        Policy(name="p", unconfirmed=word)


def test_less_than_a_minute_is_too_short_for_a_confirm_run() -> None:
    with pytest.raises(ValueError, match="0 for no confirm runs, or at least 1"):
        Policy(name="p", confirm_minutes=0.5)


def test_stopped_run_names_the_interrupted_step() -> None:
    steps = {"prepare": Status.PASS, "train": Status.CANCELLED, "eval": Status.CANCELLED}
    judged = JudgementDocument(
        status=Status.CANCELLED, reason="2 steps cancelled; x", parts=("2 steps cancelled", "x")
    )
    for known, user, reason in (
        (steps, "", "stopped by a user in train"),
        ({}, "", "stopped by a user"),
        (steps, "mia", "stopped by user mia in train"),
    ):
        ended = run_status(judged, steps=known, leftovers=[], user=user)
        assert ended == JudgementDocument(status=Status.CANCELLED, reason=reason)


@pytest.mark.parametrize("status", [Status.PASS, Status.REGRESSION, Status.FAILED, Status.UNCONFIRMED])
def test_a_run_that_left_processes_on_a_node_is_not_green(status: Status) -> None:
    left = ["still on node b after SIGKILL: pid 7"]
    worse = status.severity >= Status.INFRA_FAILURE.severity
    judged = JudgementDocument(status=status, reason="as judged", parts=("as", "judged"))
    expected = judged if worse else JudgementDocument(status=Status.INFRA_FAILURE, reason=left[0])
    assert run_status(judged, steps={}, leftovers=left) == expected
    assert run_status(judged, steps={}, leftovers=[]) == judged
