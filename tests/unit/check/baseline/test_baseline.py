"""speed.*, memory.*, baseline.loss: quiet without enough runs, red only beyond noise."""

import random
from pathlib import Path
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Floors, MetricRule, NodeRule, Policy
from tipcflow.domain import CheckResult, Facts, Measurement, MetricKey, PastRun, Phase, Status, numbers_of

KEY = MetricKey("v/train", "", "batch_cost")
# A confirm run was requested but not available: the previous run counts as its confirmation.
ALONE = Confirmation(run="child", medians={}, missing="is not waited for")
CONFIGS = Path(__file__).parents[4] / "configs" / "policies"


def history(*values: float, key: str = KEY) -> tuple[PastRun, ...]:
    return tuple(PastRun(run=f"r{number}", medians={key: value}) for number, value in enumerate(values))


def judged(
    build: ModuleType,
    value: float,
    past: tuple[float, ...],
    metric: str = "batch_cost",
    *,
    confirmation: Confirmation | None = None,
    **policy: object,
) -> CheckResult:
    facts: Facts = build.facts(measurements=tuple(build.series((value,), metric)))
    rules = Policy(**{"name": "x", "floors": Floors(speed=0.2), **policy})
    context = CheckContext(
        policy=rules, history=history(*past, key=MetricKey("v/train", "", metric)), confirmation=confirmation
    )
    (result,) = against_baseline(facts, context)
    return result


def test_the_first_run_has_nothing_to_compare_with(build: ModuleType) -> None:
    result = judged(build, 0.05, ())
    assert (result.check, result.status) == ("speed.batch_cost", Status.INSUFFICIENT_DATA)
    assert result.reason == "0.05 s; 0 of 5 earlier runs for a comparison"


def test_the_second_run_shows_the_ratio_to_the_first(build: ModuleType) -> None:
    result = judged(build, 0.06, (0.05,))
    assert (result.status, result.reason) == (
        Status.INSUFFICIENT_DATA,
        "0.06 s, 1.200 x the last run; 1 of 5 earlier runs for a comparison",
    )
    assert (result.values["n"], result.values["needed"]) == (1, 5)
    assert (
        judged(build, 0.05, (0.05,)).reason == "0.05 s, same as the last run; 1 of 5 earlier runs for a comparison"
    )


STEADY = (0.050, 0.051, 0.049, 0.050, 0.0505)


@pytest.mark.parametrize(
    ("value", "past", "status"),
    [
        (0.051, STEADY, Status.PASS),
        (0.0595, STEADY, Status.PASS),
        (0.0605, STEADY, Status.UNCONFIRMED),
        # The run before was as slow: that confirms it where no confirm run can.
        (0.0605, (*STEADY, 0.0610), Status.REGRESSION),
        (0.0395, STEADY, Status.IMPROVEMENT),
        (0.5, STEADY[:4], Status.INSUFFICIENT_DATA),
        # The same change is noise where runs differ that much anyway.
        (0.0605, (0.04, 0.05, 0.06, 0.045, 0.055), Status.PASS),
        # One slow run in the past does not move the baseline.
        (0.0605, (*STEADY, 0.5), Status.REGRESSION),
        # Nor does one that has gone again.
        (0.0605, (*STEADY, 0.5, 0.05), Status.UNCONFIRMED),
        # More than twice the limit needs no confirm run.
        (0.0705, STEADY, Status.REGRESSION),
    ],
)
def test_lower_is_better(build: ModuleType, value: float, past: tuple[float, ...], status: Status) -> None:
    assert judged(build, value, past, confirmation=ALONE).status is status


def test_a_run_before_that_was_slow_is_not_a_confirm_run(build: ModuleType) -> None:
    """It may have been let through because its own confirm run refuted it."""
    past = (*STEADY, 0.061)
    first = judged(build, 0.0605, past)
    assert (first.status, first.values["confirm"]) == (Status.UNCONFIRMED, True)
    refuted = Confirmation(run="child", medians={KEY: 0.0501})
    assert judged(build, 0.0605, past, confirmation=refuted).status is Status.PASS
    agreed = Confirmation(run="child", medians={KEY: 0.0611})
    assert judged(build, 0.0605, past, confirmation=agreed).status is Status.REGRESSION


def test_higher_is_better(build: ModuleType) -> None:
    past = (100.0, 101.0, 99.0, 100.0, 100.0)
    rules = {"metrics": {"ips": MetricRule()}}
    assert judged(build, 70.0, (*past, 70.0), "ips", confirmation=ALONE, **rules).status is Status.REGRESSION
    assert judged(build, 130.0, past, "ips", **rules).status is Status.IMPROVEMENT
    assert judged(build, 101.0, past, "ips", **rules).status is Status.PASS


def test_the_reason_has_the_numbers(build: ModuleType) -> None:
    result = judged(build, 0.0605, (0.05,) * 5)
    shown = "0.0605 s, 1.210 x the baseline 0.05 s of"
    assert result.reason == f"{shown} 5 runs; limit 20.0 %: run again to confirm or refute it"
    result = judged(build, 0.0605, (*(0.05,) * 5, 0.0605), confirmation=ALONE)
    missing = "the confirm run child is not waited for"
    assert result.reason == f"{shown} 6 runs; limit 20.0 %; previous run also beyond the limit ({missing})"
    result = judged(build, 0.0605, (0.05,) * 5, confirmation=ALONE)
    assert result.reason == f"{shown} 5 runs; limit 20.0 %; not confirmed: {missing}"
    result = judged(build, 0.0605, (0.05,) * 5, confirmation=Confirmation(run="child", medians={KEY: 0.057}))
    measured = "the confirm run measured 0.057 s: only part of the change, 14.0 % worse"
    assert (result.status, result.reason) == (
        Status.UNCONFIRMED,
        f"{shown} 5 runs; limit 20.0 %, and {measured}",
    )


def test_metrics_can_have_own_rules(build: ModuleType) -> None:
    shown = judged(build, 0.5, (*STEADY, 0.5), metrics={"batch_cost": MetricRule(gating=False)})
    assert (shown.status, shown.gating) == (Status.REGRESSION, False)
    rules = {"batch_cost": MetricRule(floor=0.05)}
    tight = judged(build, 0.055, (*(0.05,) * 5, 0.055), confirmation=ALONE, metrics=rules)
    assert tight.status is Status.REGRESSION
    facts = build.facts(measurements=tuple(build.series((1.0,), "lr")))
    assert against_baseline(facts, CheckContext()) == [], "what the policy does not name is not judged"


def test_only_the_last_runs_make_the_baseline(build: ModuleType) -> None:
    assert judged(build, 0.05, (5.0,) * 9 + (0.05,) * 5, history=5).status is Status.PASS


@pytest.mark.slow
def test_false_alerts_on_pure_noise_are_rare(build: ModuleType) -> None:
    """3 % noise, no change: over 2,000 judged runs the default rule stays quiet."""
    source = random.Random(7)
    alerts = 0
    for _ in range(100):
        series = [0.05 * (1 + 0.03 * source.gauss(0, 1)) for _ in range(25)]
        for at in range(5, 25):
            alerts += judged(build, series[at], tuple(series[:at])).status is Status.REGRESSION
    assert alerts == 0


def busy_node(
    build: ModuleType, train: float, probe: float, reader: float = 1.0, *, gating: bool = True
) -> dict[str, CheckResult]:
    """A run whose training, probes of the node, and reading of data take a multiple of the usual time."""

    def numbers(train: float, reader: float) -> list[Measurement]:
        return [
            *build.series((0.05 * train,) * 4, "batch_cost"),
            *build.series((0.01 * reader,) * 4, "reader_cost"),
        ]

    usual = numbers_of(numbers(1.0, 1.0))
    before = numbers_of(numbers(train, reader))
    past = tuple(PastRun(run=f"r{n}", medians=usual if n < 5 else before) for n in range(6))
    timed = build.series((0.1 * probe, 0.1 * probe), "probe.cpu", phase=Phase.RESOURCE, rank=-1)
    steps = build.plan().steps
    alone = tuple(one.model_copy(update={"nodes": one.nodes[:1]}) for one in steps)
    facts = build.facts(plan=build.plan(steps=alone), measurements=(*numbers(train, reader), *timed))
    rules = Policy(name="x", node_health=NodeRule(gating=gating))
    context = CheckContext(
        policy=rules, history=past, confirmation=ALONE, probes={"alpha": {"probe.cpu": (0.1,) * 5}}
    )
    return {one.metric: one for one in against_baseline(facts, context)}


def test_a_node_with_slow_probes_explains_slow_numbers(build: ModuleType) -> None:
    result = busy_node(build, train=1.6, probe=1.4)["batch_cost"]
    assert result.status is Status.INSUFFICIENT_DATA
    assert result.reason.endswith("explained by node alpha: probe cpu 1.40x slower (node_health)")
    # Where that does not make the run an infra_failure, the number stays unconfirmed.
    shown = busy_node(build, train=1.6, probe=1.4, gating=False)["batch_cost"]
    assert shown.status is Status.UNCONFIRMED


def test_a_slower_model_is_not_a_busy_node(build: ModuleType) -> None:
    suspected = (Status.REGRESSION, Status.UNCONFIRMED)
    assert busy_node(build, train=3.0, probe=1.0)["batch_cost"].status in suspected
    assert busy_node(build, train=3.0, probe=1.3)["batch_cost"].status in suspected
    assert busy_node(build, train=1.0, probe=3.0)["batch_cost"].status is Status.PASS


def test_a_slower_input_pipeline_is_judged_and_excuses_nothing(build: ModuleType) -> None:
    """Reading takes 3 x as long and a batch 1.3 x or more: that is the suite's code, not the node."""
    suspected = (Status.REGRESSION, Status.UNCONFIRMED)
    found = busy_node(build, train=1.4, probe=1.0, reader=3.0)
    assert found["reader_cost"].status in suspected
    assert found["batch_cost"].status in suspected


def test_a_part_that_hardly_matters_is_not_a_change(build: ModuleType) -> None:
    """Reading takes 0.2 ms instead of 0.1 ms of a batch of 50 ms."""
    key, whole = MetricKey("v/train", "", "reader_cost"), MetricKey("v/train", "", "batch_cost")
    past = tuple(PastRun(run=f"r{n}", medians={key: 0.0001, whole: 0.05}) for n in range(6))
    for reader, status in ((0.0002, Status.PASS), (0.02, Status.REGRESSION)):
        measured = (*build.series((reader,), "reader_cost"), *build.series((0.05,), "batch_cost"))
        context = CheckContext(policy=Policy(name="x"), history=past, confirmation=ALONE)
        found = {one.metric: one for one in against_baseline(build.facts(measurements=measured), context)}
        assert found["reader_cost"].status is status, found["reader_cost"].reason
    assert "of batch_cost, less than" not in found["reader_cost"].reason


def test_without_probes_nothing_is_explained_away(build: ModuleType) -> None:
    assert judged(build, 0.5, (*STEADY, 0.5), confirmation=ALONE).status is Status.REGRESSION


def test_a_failed_step_is_not_compared(build: ModuleType) -> None:
    facts = build.facts(step_status={build.TRAIN: Status.FAILED, build.INFER: Status.FAILED})
    assert {result.leg for result in against_baseline(facts, CheckContext())} == {build.ON, build.OFF}
    facts = build.facts(
        step_status={build.TRAIN: Status.FAILED}, leg_status={f"{build.INFER}/{build.ON}": Status.PASS}
    )
    assert {result.leg for result in against_baseline(facts, CheckContext())} == {build.ON}


def memory(
    build: ModuleType, *peaks: tuple[float, int], name: str = "peak_rss", **changes: object
) -> list[CheckResult]:
    measured = [
        one for peak, rank in peaks for one in build.series((peak,), name, rank=rank, phase=Phase.RESOURCE)
    ]
    past = tuple(
        PastRun(
            run=f"r{n}",
            medians={MetricKey("v/train", "", f"{name}.rank{at}"): rank for at in (0, 1)}
            | {MetricKey("v/train", "", f"{name}.all"): 6.6e8},
        )
        for n, rank in enumerate((*(3.4e8,) * 5, 5e8))
    )
    facts = build.facts(measurements=tuple(measured), **changes)
    return against_baseline(facts, CheckContext(history=past, confirmation=ALONE))


@pytest.mark.parametrize("name", ["peak_rss", "peak_gpu"])
def test_memory_is_compared_rank_by_rank(build: ModuleType, name: str) -> None:
    """One of two ranks needs more: the median of both would hide it, and so would a large sum."""
    (result,) = memory(build, (3.4e8, 0), (5e8, 1), (6.6e8, -1), name=name)
    assert (result.check, result.status) == (f"memory.{name}", Status.REGRESSION)
    shown = "476.8 MiB, 1.471 x the baseline 324.2 MiB of 6 runs; limit 15.0 %"
    assert result.reason.startswith(f"rank 1 of 2: {shown}; more than 30.0 % needs no confirm run")
    assert result.values["ranks"] == {"0": 3.4e8, "1": 5e8}
    (less,) = memory(build, (1.7e8, 0), (3.4e8, 1), name=name)
    assert (less.status, less.reason.startswith("rank 0 of 2: 162.1 MiB")) == (Status.IMPROVEMENT, True)
    (same,) = memory(build, (3.4e8, 0), (3.4e8, 1), name=name)
    assert same.status is Status.PASS
    (result,) = memory(build, (1.3e9, -1), name=name)
    assert result.values["baseline"] == 6.6e8, "the sum is compared with sums, never with single ranks"


def test_the_peak_of_a_short_job_is_luck(build: ModuleType) -> None:
    short = tuple(record.model_copy(update={"ended_at": 100.4}) for record in build.records())
    (result,) = memory(build, (5e8, 0), records=short)
    assert (result.status, result.reason) == (
        Status.INSUFFICIENT_DATA,
        "476.8 MiB; ran 0.4 s; too short for a peak value",
    )


def test_preparing_data_is_not_judged(build: ModuleType) -> None:
    facts = build.facts(
        measurements=tuple(build.series((1.0,), "peak_rss", step="prepare", rank=-1, phase=Phase.RESOURCE))
    )
    assert against_baseline(facts, CheckContext()) == []


@pytest.mark.parametrize("runs", [0, 3, 6, 20])
@pytest.mark.parametrize("metric", ["ips", "batch_cost", "inference_time", "max_mem_reserved"])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_speed_or_a_time_of_nothing_is_not_a_measurement(
    build: ModuleType, metric: str, value: float, runs: int
) -> None:
    result = judged(build, value, (100.0,) * runs, metric, metrics={metric: MetricRule()})
    if not runs and value == 0 and metric == "max_mem_reserved":
        assert result.status is Status.INSUFFICIENT_DATA, "a run on CPU reserves no memory of a GPU"
        return
    assert result.status is Status.FAILED, result.reason
    assert "is not a measurement" in result.reason


def test_a_time_below_the_last_digit_of_a_log_is_one(build: ModuleType) -> None:
    rules = {"metrics": {"reader_cost": MetricRule()}}
    assert judged(build, 0.0, (0.0001,) * 6, "reader_cost", **rules).status is Status.IMPROVEMENT


def test_baseline_of_invalid_numbers_is_not_an_improvement(build: ModuleType) -> None:
    assert judged(build, 0.05, (float("nan"),) * 6).status is Status.INSUFFICIENT_DATA
    assert judged(build, 0.05, (5e-324,) * 6).status is Status.INSUFFICIENT_DATA


@pytest.mark.parametrize(
    ("metric", "phase", "usual", "now", "status", "words"),
    [
        (
            "top1",
            Phase.EVAL,
            0.75,
            0.70,
            Status.REGRESSION,
            "needs no confirm run (not measurable in lite",
        ),
        ("top1", Phase.EVAL, 0.75, 0.73, Status.UNCONFIRMED, "not confirmed: not measurable in lite"),
        ("top1", Phase.EVAL, 0.75, 0.75, Status.PASS, "within 2.0 %"),
        ("peak_rss", Phase.RESOURCE, 1e9, 2e9, Status.REGRESSION, "more than 10.0 % needs no confirm run"),
        ("loss", Phase.TRAIN, 1.0, 1.2, Status.REGRESSION, "needs no confirm run"),
        ("batch_cost", Phase.TRAIN, 0.5, 0.8, Status.REGRESSION, "3 confirm runs measured"),
    ],
)
@pytest.mark.parametrize("runs", [6, 24])
def test_metrics_that_a_confirm_run_lacks_are_evaluated_alone(
    build: ModuleType, metric: str, phase: Phase, usual: float, now: float, status: Status, words: str, runs: int
) -> None:
    """A run on a little data has another accuracy, loss and memory, whatever is wrong with the model."""
    rank = 0 if phase is not Phase.EVAL else -1
    step = build.EVAL if phase is Phase.EVAL else build.TRAIN
    one = Measurement(
        run=build.RUN, step=step, node="alpha", rank=rank, metric=metric, phase=phase, value=now, unit=""
    )
    (key,) = numbers_of([one])
    past = [usual * (1 + 0.0005 * (at % 3 - 1)) for at in range(runs)]
    policy = load_yaml(CONFIGS / "weekly.yaml", Policy)
    confirms = policy.confirm_runs if metric == "batch_cost" else 1
    context = CheckContext(
        policy=policy,
        history=tuple(PastRun(run=f"r{at}", medians={key: value}) for at, value in enumerate(past)),
        confirmation=Confirmation("c1", {key: now}, more={key: (now,) * (confirms - 1)}, runs=confirms),
        unconfirmable="not measurable in lite",
    )
    (result,) = against_baseline(build.facts(measurements=(one,)), context)
    assert result.status is status, result.reason
    assert not result.values.get("confirm")
    if runs < 8:
        assert words in result.reason
