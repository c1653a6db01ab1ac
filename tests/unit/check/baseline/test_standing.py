"""Substitutes for `batch_cost` and `loss` in logs that have neither, and slowness that a median does not show."""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.evidence import found_in
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Measurement, PastRun, Phase, Status, numbers_of

CONFIGS = Path(__file__).parents[4] / "configs" / "policies"
SHIPPED = {name: load_yaml(CONFIGS / f"{name}.yaml", Policy) for name in ("pr", "weekly")}
RUNS = 8
BAD = (Status.REGRESSION, Status.UNCONFIRMED)


def gating(
    build: ModuleType,
    now: Iterable[Measurement],
    before: Iterable[Measurement],
    policy: str = "weekly",
    prints: Prints | None = None,
    confirmation: Confirmation | None = None,
) -> list[CheckResult]:
    """The gating results of a run after equal runs."""
    medians = numbers_of(before)
    context = CheckContext(
        policy=SHIPPED[policy],
        history=tuple(PastRun(run=f"r{number}", medians=medians) for number in range(RUNS)),
        prints=prints or Prints(),
        confirmation=confirmation,
    )
    results = against_baseline(build.facts(measurements=tuple(now)), context)
    return [one for one in results if one.gating]


def duration(build: ModuleType, seconds: float) -> list[Measurement]:
    return list(build.series((seconds,), "wall_time", phase=Phase.RESOURCE, rank=-1))


@pytest.mark.parametrize("policy", ["pr", "weekly"])
@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("batch_cost", 10.0),
        ("time_each_step", 10.0),
        ("interval_runtime", 10.0),
        ("ips", 0.1),
        ("throughput", 0.1),
        ("qps", 0.1),
        ("interval_samples_per_second", 0.1),
        ("epoch_time", 10.0),
    ],
)
def test_training_ten_times_slower_is_never_green(build: ModuleType, name: str, worse: float, policy: str) -> None:
    before = [*build.series((2.0,) * 9, name), *duration(build, 20.0)]
    now = [*build.series((2.0 * worse,) * 9, name), *duration(build, 200.0)]
    (result,) = gating(build, now, before, policy)
    assert (result.check, result.status in BAD) == (f"speed.{name}", True), result.reason


def test_the_duration_of_a_training_counts_if_its_log_has_no_speed(build: ModuleType) -> None:
    (result,) = gating(build, duration(build, 200.0), duration(build, 20.0))
    assert (result.metric, result.status) == ("wall_time", Status.UNCONFIRMED), result.reason
    both = [*duration(build, 200.0), *build.series((0.5,), "batch_cost")]
    names = [one.metric for one in gating(build, both, both)]
    assert names == ["batch_cost"], "a speed that is printed is more precise"


@pytest.mark.parametrize(
    ("losses", "judged"),
    [
        (("loss", "loss_pixel"), ["loss"]),
        (("train_loss",), ["train_loss"]),
        (("total_loss", "loss_pixel"), ["total_loss"]),
        (("G_loss", "D_loss"), []),  # they oppose each other: shown, not gating
        (("energy",), ["energy"]),
    ],
)
def test_the_objective_is_compared_under_any_name(
    build: ModuleType, losses: tuple[str, ...], judged: list[str]
) -> None:
    prints = Prints(losses=("energ*",))
    before = [one for name in losses for one in build.series((0.5,) * 9, name)]
    now = [one for name in losses for one in build.series((1.0,) * 9, name)]
    results = gating(build, now, before, prints=prints)
    assert sorted(one.metric for one in results) == judged
    assert [one.status for one in results] == [Status.UNCONFIRMED] * len(judged)
    assert [one.check for one in results] == [f"baseline.{one.metric}" for one in results]
    better = gating(build, before, now, prints=prints)
    assert {one.status for one in better} <= {Status.PASS, Status.IMPROVEMENT}


def training(build: ModuleType, *ranks: tuple[float, ...]) -> list[Measurement]:
    return [one for rank, values in enumerate(ranks) for one in build.series(values, "batch_cost", rank=rank)]


STEADY = (0.05,) * 100


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_a_slow_end_is_not_hidden_by_the_median(build: ModuleType, share: float) -> None:
    slow = int(100 * share)
    late = (0.05,) * (100 - slow) + (0.5,) * slow
    (result,) = gating(build, training(build, late), training(build, STEADY))
    assert (result.check, result.status) == ("speed.batch_cost", Status.UNCONFIRMED), result.reason
    assert result.reason.startswith("slowest rank, mean: "), result.reason
    assert result.values["confirm"] is True


def test_a_slow_rank_is_not_hidden_by_the_others(build: ModuleType) -> None:
    ranks = [STEADY] * 3
    before, now = training(build, *ranks, STEADY), training(build, *ranks, (0.5,) * 100)
    (result,) = gating(build, now, before)
    assert (result.check, result.status) == ("speed.batch_cost", Status.UNCONFIRMED), result.reason
    confirmed = Confirmation(run="child", medians=numbers_of(now))
    (result,) = gating(build, now, before, confirmation=confirmed)
    assert result.status is Status.REGRESSION, result.reason
    refuted = Confirmation(run="child", medians=numbers_of(before))
    (result,) = gating(build, now, before, confirmation=refuted)
    assert result.status is Status.PASS, result.reason


def test_a_few_slow_iterations_are_noise(build: ModuleType) -> None:
    (result,) = gating(build, training(build, (0.05,) * 97 + (5.0,) * 3), training(build, STEADY))
    assert result.status is Status.PASS, result.reason


@pytest.mark.parametrize("name", ["loss", "reader_cost", "peak_gpu"])
def test_a_baseline_of_zero_does_not_hide_a_value(build: ModuleType, name: str) -> None:
    phase = {"phase": Phase.RESOURCE} if name == "peak_gpu" else {}
    costs = training(build, (0.05,) * 9)
    before = [*build.series((0.0,) * 9, name, **phase), *costs]
    now = [*build.series((5.0,) * 9, name, **phase), *costs]
    found = {one.metric: one for one in gating(build, now, before)}
    assert found[name].status is Status.UNCONFIRMED, found[name].reason
    assert found[name].reason.endswith("the baseline of 8 runs is 0: run again to confirm or refute it")
    again = Confirmation(run="child", medians=numbers_of(now))
    found = {one.metric: one for one in gating(build, now, before, confirmation=again)}
    assert found[name].status is Status.REGRESSION, found[name].reason
    refuted = Confirmation(run="child", medians=numbers_of(before))
    found = {one.metric: one for one in gating(build, now, before, confirmation=refuted)}
    assert found[name].status is Status.PASS, found[name].reason
    found = {one.metric: one for one in gating(build, before, before)}
    assert found[name].status is Status.PASS, found[name].reason


def test_a_confirm_run_with_few_iterations_refutes_by_its_median(build: ModuleType) -> None:
    before = training(build, STEADY)
    again = Confirmation(run="child", medians=numbers_of(training(build, (0.05,) * 9)), missing="is pass")
    (result,) = gating(build, training(build, (0.0555,) * 100), before, confirmation=again)
    assert result.status is Status.PASS, result.reason


def test_an_evaluation_keeps_its_own_rule(build: ModuleType) -> None:
    """The rule of `loss` holds for the training's CELoss; `pr` does not gate evaluations."""
    before = [*build.series((0.5,) * 9, "CELoss"), *build.series((0.5,), "CELoss", phase=Phase.EVAL)]
    now = [*build.series((0.5,) * 9, "CELoss"), *build.series((5.0,), "CELoss", phase=Phase.EVAL)]
    assert [one.status for one in gating(build, now, before, "pr")] == [Status.PASS]


@pytest.mark.parametrize("name", ["throughput", "train_loss"])
def test_the_floor_of_the_rule_counts(build: ModuleType, name: str) -> None:
    wide = {"batch_cost": {"floor": 0.9}, "loss": {"floor": 0.9}}
    policy = Policy.model_validate({**SHIPPED["weekly"].model_dump(), "metrics": wide})
    before, now = build.series((1.0,) * 9, name), build.series((0.7 if name == "throughput" else 1.3,) * 9, name)
    history = tuple(PastRun(run=f"r{number}", medians=numbers_of(before)) for number in range(RUNS))
    results = against_baseline(build.facts(measurements=tuple(now)), CheckContext(policy=policy, history=history))
    assert {one.status for one in results if one.metric == name} == {Status.PASS}


@pytest.mark.parametrize(
    ("name", "rule", "gates"),
    [
        # The shipped policies only show `ips`, because it repeats `batch_cost`; here it replaces `batch_cost`.
        ("ips", {"gating": False}, True),
        ("ips", {"floor": 0.9}, False),
        # A loss that the policy names has the rule that it names.
        ("train_loss", {"gating": False}, False),
        ("train_loss", {"floor": 0.9}, False),
        ("train_loss", {}, True),
    ],
)
def test_rule_of_a_metric_overrides_the_default(
    build: ModuleType, name: str, rule: dict[str, object], gates: bool
) -> None:
    rules = {"batch_cost": {}, "loss": {}, name: rule}
    policy = Policy.model_validate({**SHIPPED["weekly"].model_dump(), "metrics": rules})
    before, now = build.series((1.0,) * 9, name), build.series((0.7 if name == "ips" else 1.3,) * 9, name)
    history = tuple(PastRun(run=f"r{number}", medians=numbers_of(before)) for number in range(RUNS))
    results = against_baseline(build.facts(measurements=tuple(now)), CheckContext(policy=policy, history=history))
    bad = [one for one in results if one.metric == name and one.gating and one.status in BAD]
    assert bool(bad) is gates


def test_a_rounded_digit_is_not_a_change(build: ModuleType) -> None:
    before, now = build.series((0.0,) * 9, "loss"), build.series((1e-6,) * 9, "loss")
    assert [one.status for one in gating(build, now, before)] == [Status.PASS]


@pytest.mark.parametrize(
    ("metric", "past"),
    [("mIoU", (0.2, 0.15, 0.1, 0.05, 0.0)), ("loss", (-0.4, -0.3, -0.2, -0.1, 0.0))],
)
def test_a_trend_that_ends_at_zero_has_a_limit(build: ModuleType, metric: str, past: tuple[float, ...]) -> None:
    phase = Phase.EVAL if metric == "mIoU" else Phase.TRAIN
    key = next(iter(numbers_of(build.series((1.0,), metric, phase=phase))))
    history = tuple(PastRun(run=f"r{at}", medians={key: value}) for at, value in enumerate(past))
    facts = build.facts(measurements=tuple(build.series((0.1,), metric, phase=phase)))
    (result,) = against_baseline(facts, CheckContext(policy=SHIPPED["weekly"], history=history))
    assert result.values["limit"] < 10, result.reason


def test_the_slowest_rank_is_not_a_required_evidence(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(training(build, STEADY)))
    assert not [key for key in found_in(facts, Prints()) if key.what.endswith(".slowest")]
    assert [key for key in found_in(facts, Prints()) if key.what == "batch_cost"]
