"""speed.*, memory.*, baseline.loss with enough history for the gate: it asks before it is red."""

import random
from pathlib import Path
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline import against_baseline
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Floors, Policy
from tipcflow.domain import CheckResult, PastRun, Status

KEY = "v/train||batch_cost"
CONFIGS = Path(__file__).parents[3] / "configs" / "policies"


def judged(build: ModuleType, value: float, last: tuple[float, ...] = (), **context: object) -> CheckResult:
    source = random.Random(3)
    past = [0.05 * (1 + source.gauss(0, 0.01)) for _ in range(36)] + list(last)
    history = tuple(PastRun(run=f"r{at}", medians={KEY: one}) for at, one in enumerate(past))
    facts = build.facts(measurements=tuple(build.series((value,), "batch_cost")))
    rules = Policy(name="x", history=52, floors=Floors(speed=0.02))
    (result,) = against_baseline(facts, CheckContext(policy=rules, history=history, **context))
    return result


def confirmed(value: float) -> Confirmation:
    return Confirmation(run="c1", medians={KEY: value})


def test_a_usual_run_passes(build: ModuleType) -> None:
    result = judged(build, 0.0503)
    assert (result.status, result.values.get("confirm")) == (Status.PASS, None)


def test_a_slow_run_is_a_question_first(build: ModuleType) -> None:
    result = judged(build, 0.055)
    assert (result.status, result.values["confirm"]) == (Status.INSUFFICIENT_DATA, True)
    assert result.reason.endswith("more than this history's noise: run again to confirm or refute it")


def test_the_confirm_run_decides(build: ModuleType) -> None:
    result = judged(build, 0.055, confirmation=confirmed(0.0552))
    assert result.status is Status.REGRESSION
    assert result.values["size"] == pytest.approx(0.1, abs=0.02)
    assert "the level changed by +10" in result.reason
    refuted = judged(build, 0.055, confirmation=confirmed(0.0501))
    assert refuted.status is Status.PASS
    assert refuted.reason.endswith("not confirmed")


def test_a_confirm_run_that_says_nothing_leaves_the_question(build: ModuleType) -> None:
    result = judged(build, 0.055, confirmation=Confirmation(run="c1", medians={}, missing="has not ended in time"))
    assert result.status is Status.INSUFFICIENT_DATA
    assert result.reason.endswith("the confirm run c1 has not ended in time")


def test_two_slow_runs_confirm_each_other(build: ModuleType) -> None:
    assert judged(build, 0.055, (0.0551,)).status is Status.REGRESSION


def test_a_faster_run_needs_no_confirm_run(build: ModuleType) -> None:
    result = judged(build, 0.045)
    assert (result.status, result.values.get("confirm")) == (Status.PASS, None)
    assert judged(build, 0.045, (0.0451,)).status is Status.IMPROVEMENT


@pytest.mark.parametrize("runs", [8, 9, 12, 15, 16, 30])
@pytest.mark.parametrize("name", ["pr", "weekly"])
def test_no_history_is_too_young_for_a_run_that_takes_three_times_as_long(
    build: ModuleType, name: str, runs: int
) -> None:
    """Whatever the gate makes of a single run that is far off: it is asked about."""
    source = random.Random(runs)
    past = [0.05 * (1 + source.gauss(0, 0.01)) for _ in range(runs)]
    history = tuple(PastRun(run=f"r{at}", medians={KEY: one}) for at, one in enumerate(past))
    facts = build.facts(measurements=tuple(build.series((0.15,), "batch_cost")))
    policy = load_yaml(CONFIGS / f"{name}.yaml", Policy)
    (result,) = against_baseline(facts, CheckContext(policy=policy, history=history))
    assert (result.status, result.values.get("confirm")) == (Status.INSUFFICIENT_DATA, True), result.reason
    told = CheckContext(policy=policy, history=history, confirmation=confirmed(0.151))
    assert against_baseline(facts, told)[0].status in (Status.REGRESSION, Status.INSUFFICIENT_DATA)
    told = CheckContext(policy=policy, history=history, confirmation=confirmed(0.0502))
    assert against_baseline(facts, told)[0].status is Status.PASS
