"""speed.*, memory.*, baseline.loss with enough history for the detector: it requests a confirm run first."""

import random
from pathlib import Path
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Floors, Policy
from tipcflow.domain import CheckResult, MetricKey, PastRun, Status

KEY = MetricKey("v/train", "", "batch_cost")
CONFIGS = Path(__file__).parents[4] / "configs" / "policies"


def judged(build: ModuleType, value: float, last: tuple[float, ...] = (), **context: object) -> CheckResult:
    source = random.Random(3)
    past = [0.05 * (1 + source.gauss(0, 0.01)) for _ in range(36)] + list(last)
    history = tuple(PastRun(run=f"r{at}", medians={KEY: one}) for at, one in enumerate(past))
    facts = build.facts(measurements=tuple(build.series((value,), "batch_cost")))
    rules = Policy(name="x", history=52, floors=Floors(speed=0.02))
    (result,) = against_baseline(facts, CheckContext(policy=rules, history=history, **context))
    return result


def confirmed(value: float, runs: int = 1) -> Confirmation:
    return Confirmation(run="c1", medians={KEY: value}, more={KEY: (value,) * (runs - 1)}, runs=runs)


def test_a_usual_run_passes(build: ModuleType) -> None:
    result = judged(build, 0.0503)
    assert (result.status, result.values.get("confirm")) == (Status.PASS, None)
    assert result.measured.sigma == pytest.approx(0.0005, rel=0.3), "one per cent of 0.05 s"


def test_a_slow_run_is_a_question_first(build: ModuleType) -> None:
    result = judged(build, 0.055)
    assert (result.status, result.values["confirm"]) == (Status.UNCONFIRMED, True)
    assert result.reason.endswith("limit 5.3 %: run again to confirm or refute it")


def test_the_confirm_run_decides(build: ModuleType) -> None:
    result = judged(build, 0.055, confirmation=confirmed(0.0552))
    assert result.status is Status.REGRESSION
    assert result.values["size"] == pytest.approx(0.1, abs=0.02)
    assert "the level changed by +10" in result.reason
    refuted = judged(build, 0.055, confirmation=confirmed(0.0501))
    assert refuted.status is Status.PASS
    assert refuted.reason.endswith("not confirmed")


def test_a_confirm_run_without_a_result_leaves_the_change_unconfirmed(build: ModuleType) -> None:
    result = judged(
        build, 0.055, confirmation=Confirmation(run="c1", medians={}, missing="did not finish before its deadline")
    )
    assert result.status is Status.UNCONFIRMED
    assert result.reason.endswith("not confirmed: the confirm run c1 did not finish before its deadline")


def test_two_slow_runs_confirm_each_other_if_no_confirm_run_measures(build: ModuleType) -> None:
    assert judged(build, 0.055, (0.0551,)).values["confirm"]
    lost = Confirmation(run="c1", medians={}, missing="did not finish before its deadline")
    assert judged(build, 0.055, (0.0551,), confirmation=lost).status is Status.REGRESSION


def test_a_faster_run_needs_no_confirm_run(build: ModuleType) -> None:
    result = judged(build, 0.045)
    assert (result.status, result.values.get("confirm")) == (Status.PASS, None)
    assert judged(build, 0.044, (0.0441,)).status is Status.IMPROVEMENT
    nearer = tuple(0.0451 + 0.0001 * (at % 3) for at in range(9))
    assert judged(build, 0.0452, nearer[:2]).status is Status.PASS, "a small improvement must last"
    assert judged(build, 0.0452, nearer).status is Status.IMPROVEMENT


@pytest.mark.parametrize("runs", [8, 9, 12, 15, 16, 30])
@pytest.mark.parametrize("name", ["pr", "weekly"])
def test_run_of_threefold_duration_is_a_regression_with_any_history(
    build: ModuleType, name: str, runs: int
) -> None:
    """A single run that is far off is always re-measured, whatever the detector decides."""
    source = random.Random(runs)
    past = [0.05 * (1 + source.gauss(0, 0.01)) for _ in range(runs)]
    history = tuple(PastRun(run=f"r{at}", medians={KEY: one}) for at, one in enumerate(past))
    facts = build.facts(measurements=tuple(build.series((0.15,), "batch_cost")))
    policy = load_yaml(CONFIGS / f"{name}.yaml", Policy)
    (result,) = against_baseline(facts, CheckContext(policy=policy, history=history))
    assert (result.status, result.values.get("confirm")) == (Status.UNCONFIRMED, True), result.reason
    report = CheckContext(policy=policy, history=history, confirmation=confirmed(0.151, policy.confirm_runs))
    assert against_baseline(facts, report)[0].status is Status.REGRESSION
    report = CheckContext(policy=policy, history=history, confirmation=confirmed(0.0502))
    assert against_baseline(facts, report)[0].status is Status.PASS


def wavy(level: float, runs: int) -> list[float]:
    return [level * (1 + 0.003 * ((at * 7) % 5 - 2)) for at in range(runs)]


def weekly(
    build: ModuleType,
    value: float,
    past: list[float],
    confirm: float | None = None,
    name: str = "weekly",
    missing: str = "",
) -> CheckResult:
    history = tuple(PastRun(run=f"r{at}", medians={KEY: one}) for at, one in enumerate(past))
    facts = build.facts(measurements=tuple(build.series((value,), "batch_cost")))
    policy = load_yaml(CONFIGS / f"{name}.yaml", Policy)
    lost = Confirmation(run="c1", medians={}, missing=missing)
    report = confirmed(confirm, policy.confirm_runs) if confirm else lost
    context = CheckContext(policy=policy, history=history, confirmation=report if confirm or missing else None)
    (result,) = against_baseline(facts, context)
    return result


@pytest.mark.parametrize("since", [2, 3, 4, 7, 11, 15])
@pytest.mark.parametrize("slow", [0.5, 0.8, 4.0])
def test_after_an_improvement_slow_runs_are_found_at_once(build: ModuleType, since: int, slow: float) -> None:
    """The detector drops the runs before an improvement: while the new level has few runs, a floor decides."""
    past = wavy(0.5, 30) + wavy(0.4, since)
    asks = weekly(build, slow, past)
    assert (asks.status, asks.values.get("confirm")) == (Status.UNCONFIRMED, True), asks.reason
    assert asks.values["ratio"] == pytest.approx(slow / 0.4, rel=0.01)
    assert f"of {since} runs" in asks.reason
    assert weekly(build, slow, past, slow).status is Status.REGRESSION
    assert weekly(build, slow, past, 0.4).status is Status.PASS
    assert weekly(build, 0.4, past).status is Status.PASS


@pytest.mark.parametrize("slow", [0.5, 0.8, 4.0])
def test_a_slow_level_after_an_improvement_never_becomes_the_usual_one(build: ModuleType, slow: float) -> None:
    past = wavy(0.5, 30) + wavy(0.4, 4)
    for value in wavy(slow, 12):
        assert weekly(build, value, past, value).status is Status.REGRESSION


def test_an_unconfirmed_accepted_change_is_not_a_new_level(build: ModuleType) -> None:
    """The slow runs were not accepted: what is as slow is a regression, what is as fast as before is none."""
    past = wavy(0.5, 30)
    for value in wavy(0.65, 12):  # confirm runs are never to be had, and every run is let through
        output = weekly(build, value, past, missing="is not waited for")
        assert output.status is not Status.PASS, output.reason
        past.append(value)
    assert output.status is Status.REGRESSION
    assert output.values["baseline"] == pytest.approx(0.5, rel=0.01)
    assert weekly(build, 0.5, past).status is Status.PASS
    # Back at the old level for a while, that one counts again.
    assert weekly(build, 0.65, past + wavy(0.5, 6), 0.65).status is Status.REGRESSION
    assert weekly(build, 0.5, past + wavy(0.5, 6)).status is Status.PASS


@pytest.mark.parametrize("name", ["pr", "weekly"])
@pytest.mark.parametrize("outliers", [2, 4, 7])
def test_run_of_tenfold_duration_is_a_regression_despite_two_levels(
    build: ModuleType, outliers: int, name: str
) -> None:
    """Where runs are of two levels, everything may be an outlier; this is not."""
    past = wavy(0.5, 14) + wavy(0.4, outliers)
    assert weekly(build, 5.0, past, name=name).values.get("confirm")
    assert weekly(build, 5.0, past, 5.0, name=name).status is Status.REGRESSION
