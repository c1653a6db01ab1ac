"""The budget of a run: its start, its end, and what it cuts or refuses."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import TRAIN, a_plan

from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Attempt, Status
from tipcflow.execute.attempt.budget import Budget, budget_of
from tipcflow.execute.request import RunRequest

STEP = a_plan().step(TRAIN).model_copy(update={"deadline_s": 100.0})
SUITE = Suite(name="s", folder="/s", dialects=("models/template",))
POLICY = Policy(name="p", budget_minutes=10, confirm_minutes=3)


def request(**fields: Any) -> RunRequest:
    return RunRequest(params="p.txt", suite="s", mode="m", cluster="c", config_dir=Path("configs"), **fields)


def attempts(*starts: float) -> list[Attempt]:
    return [
        Attempt(run="r", step=TRAIN, attempt=number, nodes=("a",), started_at=at, records=())
        for number, at in enumerate(starts, 1)
    ]


def test_the_budget_starts_with_the_first_attempt_under_the_present_lease() -> None:
    def ends(*starts: float, leased_at: float = 0.0) -> float:
        return budget_of(request(), SUITE, POLICY, attempts=attempts(*starts), leased_at=leased_at).ends

    assert ends() == float("inf")
    assert ends(1000.0, 1500.0) == 1600.0
    assert ends(1000.0, leased_at=2000.0) == float("inf"), "a cleared run waits for slots again"
    assert ends(1000.0, 2100.0, leased_at=2000.0) == 2700.0


def test_the_suites_budget_replaces_the_policys() -> None:
    own = SUITE.model_copy(update={"budget_minutes": 1.0})
    assert budget_of(request(), own, POLICY).seconds == 60


def test_confirm_run_has_a_separate_deadline() -> None:
    requested = request(confirms="run-1", ends_at=5000.0)
    assert budget_of(requested, SUITE, POLICY, attempts=attempts(1000.0)) == Budget(180, 5000.0)


@pytest.mark.parametrize(("started", "deadline"), [(0.0, 100.0), (900.0, 100.0), (950.0, 50.0), (1200.0, 1.0)])
def test_a_step_runs_no_longer_than_the_rest_of_the_budget(started: float, deadline: float) -> None:
    assert Budget(60, 1000.0).cut(STEP, started).deadline_s == deadline
    assert Budget(60).cut(STEP, started) == STEP


def test_only_a_step_cut_by_the_budget_ends_because_of_the_budget() -> None:
    budget = Budget(60, 1000.0)
    message = "the run's budget of 60 s is used up"
    assert budget.cut_short(STEP, 950.0, 1000.0) == message
    assert budget.cut_short(STEP, 950.0, 999.0) == "", "it failed before"
    assert budget.cut_short(STEP, 900.0, 1001.0) == "", "its own deadline is not later"
    assert budget.refusal(1001.0) == (Status.INFRA_FAILURE, f"not started: {message}")
    assert budget.refusal(999.0) is None
