"""Values of several confirm runs, from the results of a run's confirm runs to the reason of its check."""

import math
from collections.abc import Mapping
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.config.policy import Policy
from tipcflow.domain import CheckResult, MetricKey, PastRun, Status
from tipcflow.domain.keys import SLOWEST

KEY = MetricKey("v/train", "", "batch_cost")
POLICY = Policy(name="three", confirm_runs=3, history=20)
USUAL, SLOW = 0.2, 0.28


def judged(
    build: ModuleType,
    first: float | None,
    more: tuple[float, ...] = (),
    *,
    runs: int,
    missing: str = "",
    last: str = "",
    unconfirmable: str = "",
    key: MetricKey = KEY,
) -> CheckResult:
    medians: Mapping[MetricKey, float] = {} if first is None else {key: first}
    found = Confirmation("c9", medians, missing, more={key: more} if more else {}, runs=runs, last=last)
    past = [USUAL * (1 + 0.01 * (at % 5 - 2)) for at in range(6)]
    history = tuple(PastRun(run=f"r{at}", medians={KEY: value}) for at, value in enumerate(past))
    context = CheckContext(policy=POLICY, history=history, confirmation=found, unconfirmable=unconfirmable)
    facts = build.facts(measurements=tuple(build.series((SLOW,), "batch_cost")))
    (result,) = [one for one in against_baseline(facts, context) if one.check == "speed.batch_cost"]
    return result


def test_values_of_all_confirm_runs_are_in_the_reason(build: ModuleType) -> None:
    result = judged(build, 0.3, (0.31, 0.29), runs=3)
    assert (result.status, result.measured.needs_confirm) == (Status.REGRESSION, False)
    assert result.reason.endswith("limit 25.0 %, and 3 confirm runs measured 0.3 s, 0.31 s, 0.29 s")


@pytest.mark.parametrize(("more", "count"), [((), 1), ((0.31,), 2)])
def test_confirm_runs_that_agree_request_another_up_to_three(
    build: ModuleType, more: tuple[float, ...], count: int
) -> None:
    result = judged(build, 0.3, more, runs=count)
    assert (result.status, result.measured.needs_another) == (Status.UNCONFIRMED, True)
    assert result.reason.endswith(f"shown by {count} of 3 confirm runs: run again to confirm or refute it")


@pytest.mark.parametrize(
    ("more", "runs", "missing", "words"),
    [
        (
            (),
            2,
            "is infra_failure: node b lost",
            "(only 1 of 3: the confirm run c9 is infra_failure: node b lost)",
        ),
        ((), 2, "", "(only 1 of 3: the confirm run c9 did not measure it)"),
        ((0.31,), 3, "is cancelled", "(only 2 of 3: the confirm run c9 is cancelled)"),
    ],
)
def test_lost_further_confirm_run_is_named_by_the_regression(
    build: ModuleType, more: tuple[float, ...], runs: int, missing: str, words: str
) -> None:
    result = judged(build, 0.3, more, runs=runs, missing=missing)
    assert (result.status, result.measured.needs_confirm) == (Status.REGRESSION, False)
    assert result.reason.endswith(words)


def test_no_confirm_run_follows_a_failed_one(build: ModuleType) -> None:
    result = judged(build, 0.3, runs=1, last="the confirm run c9 failed")
    assert (result.status, result.measured.needs_confirm) == (Status.REGRESSION, False)
    assert result.reason.endswith("(only 1 of 3: the confirm run c9 failed)")


@pytest.mark.parametrize("first", [None, math.nan])
def test_metric_that_no_confirm_run_measured_is_unconfirmed(build: ModuleType, first: float | None) -> None:
    result = judged(build, first, runs=2, missing="is cancelled")
    assert result.status is Status.UNCONFIRMED
    assert result.reason.endswith("not confirmed: the confirm run c9 is cancelled")


@pytest.mark.parametrize("runs", [1, 3])
def test_speed_of_iterations_is_confirmed_in_another_mode(build: ModuleType, runs: int) -> None:
    result = judged(build, 0.3, (0.3, 0.3)[: runs - 1], runs=runs, unconfirmable="not measurable in lite")
    assert "not measurable" not in result.reason
    assert result.measured.needs_another == (runs == 1)


def test_mean_of_the_slowest_rank_is_confirmed_by_medians(build: ModuleType) -> None:
    """A confirm run with few iterations has no mean of the slowest rank."""
    slowest = MetricKey(KEY.step, "", f"batch_cost{SLOWEST}")
    past = [USUAL * (1 + 0.01 * (at % 5 - 2)) for at in range(6)]
    history = tuple(PastRun(run=f"r{at}", medians={KEY: v, slowest: v}) for at, v in enumerate(past))
    found = Confirmation("c3", {KEY: 0.3}, more={KEY: (0.31, 0.29)}, runs=3)
    context = CheckContext(policy=POLICY, history=history, confirmation=found)
    samples = tuple(
        one.model_copy(update={"rank": rank, "node": node})
        for rank, node in ((0, "alpha"), (1, "beta"))
        for one in build.series((SLOW,) * 40, "batch_cost")
    )
    (result,) = [one for one in against_baseline(build.facts(measurements=samples), context) if one.gating]
    assert result.status is Status.REGRESSION
    assert "3 confirm runs measured 0.3 s, 0.31 s, 0.29 s" in result.reason
