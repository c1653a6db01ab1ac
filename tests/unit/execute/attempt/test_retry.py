"""What is tried again: by class, policy, budget, and only when nothing of the attempt is left."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, open_store

from tipcflow.config.policy import Policy
from tipcflow.domain import Failure, FailureClass, InfraError, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.failure import REMEDIES
from tipcflow.domain.run.names import JobId
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.execute.attempt.retry import Retries
from tipcflow.execute.job.hang import hang_limit
from tipcflow.store import Store

LOST = Failure(failure_class=FailureClass.COMMUNICATION, node="node-b")


class Listed:
    """Nodes that report their remaining processes."""

    def __init__(self, *left: str, away: str = "", stubborn: bool = False) -> None:
        self.left, self.away, self.stubborn = list(left), away, stubborn

    def __getitem__(self, name: str) -> "Listed":
        self.name = name
        return self

    def list_ours(self) -> dict[str, Any]:
        if self.name == self.away:
            raise InfraError(f"node {self.name} does not respond")
        return {"processes": [{"job": job} for job in self.left]}

    def reap(self, job: JobId) -> dict[str, Any]:
        self.left = self.left if self.stubborn else [other for other in self.left if other != str(job)]
        return {}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = open_store(tmp_path / "tipcflow.db")
    made.runs.create(a_run(), a_plan())
    return made


def policy(**retries: int) -> Policy:
    return Policy.model_validate({"name": "p", "retries": retries})


def decide(store: Store, rules: Policy, failure: Failure = LOST, *, nodes: Any = None, **times: float) -> Failure:
    step = a_plan().step(TRAIN)
    known = {"took_s": 10.0, "left_s": 100.0} | times
    return Retries(store, a_run().id, rules).decide(step, failure, nodes or Listed(), **known)


def tried(store: Store, failure: Failure) -> None:
    """An attempt that ended so."""
    number = store.attempts.open(a_run().id, TRAIN, ("node-a", "node-b"), T0)
    store.documents.merge(
        a_run().id, FailuresDocument, {AttemptKey(TRAIN, number): failure.model_dump(mode="json")}
    )
    store.attempts.close(a_run().id, TRAIN, number, Status.INFRA_FAILURE, "", [], T0 + 1)


def test_the_policy_limits_the_retries(store: Store) -> None:
    assert decide(store, policy(communication=1)).again
    assert not decide(store, policy(communication=0)).again
    assert decide(store, policy()).again == (REMEDIES[FailureClass.COMMUNICATION].retries > 0)
    wrong = Failure(failure_class=FailureClass.CODE_ERROR)
    assert decide(store, policy(communication=1), wrong) == wrong


def test_every_class_is_tried_again_only_so_often(store: Store) -> None:
    tried(store, LOST.model_copy(update={"again": True}))
    result = decide(store, policy(communication=1))
    assert (result.again, result.why_not) == (False, "already retried once")
    assert decide(store, policy(communication=2)).again
    other = Failure(failure_class=FailureClass.KILLED)
    assert decide(store, policy(communication=1, killed=1), other).again


def test_restarted_step_counts_attempts_from_the_restart(store: Store) -> None:
    tried(store, LOST.model_copy(update={"again": True}))
    tried(store, LOST)
    assert decide(store, policy(communication=1)).again


def test_not_when_the_budget_has_no_room(store: Store) -> None:
    result = decide(store, policy(communication=1), took_s=60, left_s=59)
    assert result.then == "not retried: 59 s of the run's budget left; last attempt took 60 s"


def test_retry_waits_until_every_node_is_empty(store: Store) -> None:
    mine = f"{a_run().id}/{TRAIN}/1"
    other = f"{a_run().id}/{INFER}/1"
    rules = policy(communication=1)
    assert decide(store, rules, nodes=Listed(mine, other)).again  # what was left was ended
    assert "are left on node node-a" in decide(store, rules, nodes=Listed(mine, stubborn=True)).why_not
    result = decide(store, rules, nodes=Listed(away="node-b"))
    assert result.why_not == "node node-b could not be listed: node node-b does not respond"
    assert not result.again


@pytest.mark.parametrize(("took", "limit"), [(None, 600.0), (20.0, 120.0), (300.0, 300.0), (9000.0, 1800.0)])
def test_hang_limit_depends_on_durations_of_earlier_trainings(
    store: Store, took: float | None, limit: float
) -> None:
    if took is not None:
        past = a_run("20261120t093005-mobilenet-0000", created_at=T0 - 86400)
        store.runs.create(past, a_plan())
        number = store.attempts.open(past.id, TRAIN, ("node-a", "node-b"), T0)
        store.attempts.close(past.id, TRAIN, number, Status.PASS, "", [], T0 + took)
        store.runs.finish(past.id, Status.PASS, "", T0 + took)
    assert hang_limit(store, a_run().id, a_plan(), policy()) == limit
    assert hang_limit(store, a_run().id, a_plan(), Policy(name="p", hang_s=7)) == 7
    assert hang_limit(store, a_run().id, a_plan(), Policy(name="p", hang_s=0)) == 0
