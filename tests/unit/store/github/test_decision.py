"""The decision of an attempt is stored as before it had a type, and stored decisions of all versions are read."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tipcflow.store import Store
from tipcflow.store.engine import reading, writing
from tipcflow.store.github.attempts import NEW, PullAttempt
from tipcflow.store.github.decision import AttemptDecision

SHA = "a" * 40
# As stored by the version before `AttemptDecision`.
OLD = {
    "why": "opened",
    "reason": "",
    "chains": ["clas/*"],
    "whole": False,
    "failed": True,
    "labels": ["tipc: run"],
    "base": "main",
    "base_sha": "b" * 40,
    "mode": "lite_train_lite_infer",
    "unproven": ["clas/a: train"],
    "predicted_s": 12.5,
    "retry_at": 3.0,
}


def body_of(store: Store) -> Any:
    with reading(store.database.engine) as connection:
        return json.loads(connection.execute(text("SELECT body FROM pull_attempts")).scalar_one())


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        yield store


def add(store: Store, body: AttemptDecision) -> PullAttempt:
    attempt = PullAttempt(repository="o/r", number=7, head_sha=SHA, attempt=1, request="head", body=body)
    assert store.pulls.add(attempt)
    return attempt


@pytest.mark.parametrize("stored", [{}, {"reason": "waits for an approval"}, {"why": "rerun", "chains": []}, OLD])
def test_stored_decision_is_read_and_stored_unchanged(store: Store, stored: dict[str, Any]) -> None:
    attempt = add(store, AttemptDecision())
    with writing(store.database.engine) as connection:
        connection.execute(text("UPDATE pull_attempts SET body = :body"), {"body": json.dumps(stored)})
    (read,) = store.pulls.of("o/r", 7)
    store.pulls.started(attempt, (), read.body, state=NEW)
    assert body_of(store) == stored


def test_old_decision_has_typed_fields() -> None:
    decision = AttemptDecision.model_validate(OLD)
    assert (decision.chains, decision.labels) == (("clas/*",), ("tipc: run",))
    assert (decision.failed, decision.whole, decision.is_part) == (True, False, True)
    assert (decision.retry_at, decision.stopped, decision.unconcerned) == (3.0, False, "")


def test_unset_fields_are_not_stored(store: Store) -> None:
    add(store, AttemptDecision(why="opened", chains=()))
    assert body_of(store) == {"why": "opened", "chains": []}


def test_a_later_start_adds_its_time_only(store: Store) -> None:
    attempt = add(store, AttemptDecision(reason="opened"))
    store.pulls.started(attempt, (), attempt.body.later(7.5), state=NEW)
    assert body_of(store) == {"reason": "opened", "retry_at": 7.5}


def test_fields_of_a_later_version_are_kept(store: Store) -> None:
    newer = AttemptDecision.model_validate({"reason": "opened", "urgency": [3]})
    attempt = add(store, newer)
    store.pulls.started(attempt, (), attempt.body.later(0.0), state=NEW)
    assert body_of(store) == {"reason": "opened", "urgency": [3], "retry_at": 0.0}
    (read,) = store.pulls.of("o/r", 7)
    assert (read.body.reason, read.body.retry_at) == ("opened", 0.0)


def test_attempt_is_a_part_with_chains_or_failed() -> None:
    assert not AttemptDecision().is_part
    assert AttemptDecision(chains=("clas/*",)).is_part
    assert AttemptDecision(failed=True).is_part
