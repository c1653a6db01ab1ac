"""accuracy.final: the last evaluation against the target, in the target's unit."""

import math
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation, judge, verdict
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.numeric.accuracy import accuracy_final
from tipcflow.config.policy import AccuracyRule, Floors, MetricRule, Policy
from tipcflow.config.references import Reference, References
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Declared, Facts, MetricKey, PastRun, Phase, Status, StepKind


def judged(facts: Facts, **changes: object) -> CheckResult:
    values = {
        "model": "mobilenet_v3_small",
        "metric": "top1",
        "target": 0.85,
        "tolerance": 0.05,
        "because": "measured",
    }
    target = Reference(**{**values, **changes})
    references = References(suite="sample", references=(target,))
    (result,) = accuracy_final(facts, CheckContext(references=references))
    return result


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.PASS),
        ({"target": 85.0, "tolerance": 5.0, "unit": "%"}, Status.PASS),
        ({"target": 0.91}, Status.FAILED),
        ({"target": 0.90}, Status.PASS),
        ({"target": 0.69}, Status.IMPROVEMENT),
        ({"target": 0.71}, Status.PASS),
        ({"metric": "top5"}, Status.FAILED),
        ({"model": "resnet50"}, Status.INSUFFICIENT_DATA),
        ({"mode": "whole_train_whole_infer"}, Status.INSUFFICIENT_DATA),
    ],
)
def test_accuracy_is_compared_with_target_and_tolerance(
    build: ModuleType, changes: dict[str, object], status: Status
) -> None:
    result = judged(build.facts(), **changes)
    assert result.status is status, result.reason


@pytest.mark.parametrize(
    ("values", "target", "status"),
    [
        # Per cent without the sign: another value of the metric shows it.
        ((70.3,), 70.0, Status.PASS),
        ((70.3, 1.0), 70.0, Status.FAILED),
        # Nothing shows whether 1.0 is 1 % or 100 %: never green by the better reading.
        ((1.0,), 70.0, Status.UNCONFIRMED),
        ((0.95,), 70.0, Status.UNCONFIRMED),
        ((0.703,), 70.0, Status.PASS),
        ((0.6,), 70.0, Status.FAILED),
    ],
)
def test_percentages_without_a_sign_are_recognized(
    build: ModuleType, values: tuple[float, ...], target: float, status: Status
) -> None:
    logged = build.series(values, "top1", step=build.EVAL, rank=-1, phase=Phase.EVAL, epoch=-1)
    result = judged(build.facts(measurements=tuple(logged)), target=target, tolerance=1.0, unit="%")
    assert result.status is status, result.reason


def test_the_reason_has_the_numbers(build: ModuleType) -> None:
    low = judged(build.facts(), target=0.95)
    assert low.reason == "top1 0.85 (85 % in the log), target 0.95 ± 0.05: too low"
    assert low.values["code"] == "beyond_target"
    assert judged(build.facts(), model="x").reason == (
        "no accuracy target configured for mobilenet_v3_small in lite_train_lite_infer (metrics evaluated: top1)"
    )


def test_the_reason_has_the_unit_of_the_target_and_the_logged_value(build: ModuleType) -> None:
    per_cent = {"target": 85.0, "tolerance": 5.0, "unit": "%"}
    assert judged(build.facts(), **per_cent).reason == "top1 85 %, target 85 ± 5 %"
    facts = build.facts(measurements=tuple(build.series((0.85,), "top1", step=build.EVAL, phase=Phase.EVAL)))
    assert judged(facts, **per_cent).reason == "top1 85 % (0.85 in the log), target 85 ± 5 %"
    assert judged(facts).reason == "top1 0.85, target 0.85 ± 0.05"


def test_the_last_evaluation_of_the_evaluation_step_counts(build: ModuleType) -> None:
    in_training = build.series((1.0, 99.0), "top1", phase=Phase.EVAL, unit="%")
    facts = build.facts(measurements=(*in_training, *build.measurements()))
    assert judged(facts).status is Status.PASS
    only = build.facts(measurements=tuple(in_training))
    assert judged(only, target=0.99).status is Status.PASS


def test_a_share_is_a_share(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(build.series((0.85,), "top1", step=build.EVAL, phase=Phase.EVAL)))
    assert judged(facts).status is Status.PASS
    assert judged(facts, target=85.0, tolerance=1.0, unit="%").status is Status.PASS


def test_nan_is_not_a_result(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(build.series((math.nan,), "top1", step=build.EVAL, phase=Phase.EVAL)))
    assert judged(facts).status is Status.FAILED


def test_a_loss_must_not_be_above_its_target(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(build.series((0.5,), "loss", step=build.EVAL, phase=Phase.EVAL)))
    assert judged(facts, metric="loss", target=0.3).status is Status.FAILED
    assert judged(facts, metric="loss", target=0.48).status is Status.PASS


def with_target(**changes: object) -> References:
    values = {"model": "mobilenet_v3_small", "metric": "top1", "target": 0.85, "tolerance": 0.05, "because": "x"}
    return References(suite="sample", references=(Reference(**{**values, **changes}),))


def without_kind(build: ModuleType, *kinds: StepKind, **changes: object) -> Facts:
    """The good run without the steps of these kinds, and what waited for them."""
    kept = tuple(step.model_copy(update={"after": ()}) for step in build.steps() if step.kind not in kinds)
    gone = {step.id for step in build.steps() if step.kind in kinds}
    values = {
        "plan": build.plan(steps=kept),
        "records": tuple(one for one in build.records() if one.step not in gone),
        "measurements": tuple(one for one in build.measurements() if one.step not in gone),
        "step_status": {key: status for key, status in build.facts().step_status.items() if key not in gone},
        "ranks": {key: reports for key, reports in build.facts().ranks.items() if key not in gone},
    }
    return build.facts(**{**values, **changes})


def of_run(facts: Facts, **context: object) -> tuple[Status, list[CheckResult]]:
    """(status of the run, results of the check)."""
    results = judge(facts, CheckContext(**context))
    return verdict(facts, results)[0], [one for one in results if one.check == "accuracy.final"]


def test_inference_only_modes_have_no_accuracy(build: ModuleType) -> None:
    facts = without_kind(build, StepKind.TRAIN, StepKind.EVAL)
    assert accuracy_final(facts, CheckContext(references=with_target())) == []


@pytest.mark.parametrize(("target", "status"), [(0.85, Status.PASS), (0.95, Status.FAILED)])
def test_an_evaluation_without_a_training_has_the_target(build: ModuleType, target: float, status: Status) -> None:
    facts = without_kind(build, StepKind.TRAIN)
    run, (result,) = of_run(facts, references=with_target(target=target))
    assert (run, result.status, result.step) == (status, status, build.EVAL)


def test_a_target_that_no_evaluation_measures(build: ModuleType) -> None:
    facts = without_kind(build, StepKind.EVAL)
    run, (result,) = of_run(facts, references=with_target())
    assert (run, result.status, result.metric) == (Status.FAILED, Status.FAILED, "top1")
    words = "v: no evaluation logged top1, which has the target 0.85 ± 0.05; the training passed"
    assert result.reason == words


def test_missing_evaluation_is_not_always_a_failure(build: ModuleType) -> None:
    """No result without evaluations (confirm run), in a benchmark, and after a failed training."""
    facts = without_kind(build, StepKind.EVAL)
    confirm = {"references": with_target(), "run": build.run(trigger="confirm")}
    assert of_run(facts, **confirm)[1][0].status is Status.INSUFFICIENT_DATA
    plan = facts.plan.model_copy(update={"mode": "benchmark_train:dynamic_bs1_fp32_DP_N1C1"})
    benchmark = facts.model_copy(update={"plan": plan})
    assert of_run(benchmark, references=with_target())[1][0].status is Status.INSUFFICIENT_DATA
    statuses = {**facts.step_status, build.TRAIN: Status.FAILED}
    failed = facts.model_copy(update={"step_status": statuses})
    assert of_run(failed, references=with_target())[1][0].status is Status.INSUFFICIENT_DATA


def test_target_of_an_unplanned_variant_fails_the_run(build: ModuleType) -> None:
    run, (result,) = of_run(build.facts(), references=with_target(variant="v_renamed"))
    assert (run, result.status, result.metric) == (Status.FAILED, Status.FAILED, "top1")
    assert result.reason == (
        "target for top1 applies to variant v_renamed; trained variants: v; nothing measured the target: "
        "correct or remove it in references/sample.yaml, or set its params"
    )
    assert judged(build.facts(), variant="v").status is Status.PASS


def test_a_target_of_a_missing_variant_is_required_of_earlier_variants_only(build: ModuleType) -> None:
    """Another target of the metric applies here: unless this chain had the variant before, nothing is missing."""
    both = References(
        suite="sample",
        references=(*with_target().references, *with_target(variant="v_other").references),
    )
    run, results = of_run(build.facts(), references=both)
    assert (run, [one.status for one in results]) == (Status.PASS, [Status.PASS, Status.INSUFFICIENT_DATA])
    allow = {"policy": Policy(name="x", removed="allow"), "before": Declared(run="r", variants=("v", "v_other"))}
    run, results = of_run(build.facts(), references=both, **allow)
    assert (run, [one.status for one in results]) == (Status.FAILED, [Status.PASS, Status.FAILED])


def test_a_target_can_belong_to_one_params_file(build: ModuleType) -> None:
    run = build.run()
    own = run.chain.rpartition("/")[2]
    other = with_target(variant="v_other", params="train_infer_other")
    assert of_run(build.facts(), references=other, run=run)[0] is Status.PASS
    mine = with_target(variant="v_other", params=own)
    assert of_run(build.facts(), references=mine, run=run)[0] is Status.FAILED


def test_a_target_of_a_variant_that_the_cluster_cannot_run(build: ModuleType) -> None:
    step = build.steps()[1].model_copy(update={"id": "w/train", "variant": "w", "not_run": "no node has a GPU"})
    facts = build.facts(
        plan=build.plan(steps=(*build.steps(), step)),
        step_status={**build.facts().step_status, "w/train": Status.NOT_RUN},
        step_reason={**build.facts().step_reason, "w/train": "no node has a GPU"},
    )
    run, (result,) = of_run(facts, references=with_target(variant="w"))
    assert (run, result.status) == (Status.PASS, Status.INSUFFICIENT_DATA)


def test_passed_evaluation_without_the_target_metric_fails(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(build.series(build.CURVE)))
    result = judged(facts)
    assert (result.status, result.step) == (Status.FAILED, build.EVAL)
    assert result.reason == "v/eval passed, but logged no top1, which has a target"


@pytest.mark.parametrize("output", [Status.FAILED, Status.INFRA_FAILURE, Status.BLOCKED, None])
def test_an_evaluation_that_did_not_pass_is_not_judged_twice(build: ModuleType, output: Status | None) -> None:
    statuses = {key: status for key, status in build.facts().step_status.items() if key != build.EVAL}
    if output:
        statuses[build.EVAL] = output
    facts = build.facts(measurements=tuple(build.series(build.CURVE)), step_status=statuses)
    assert judged(facts).status is Status.INSUFFICIENT_DATA


def beside(
    build: ModuleType, value: float, past: tuple[float, ...], metric: str = "top1", **rules: object
) -> CheckResult:
    """`accuracy.history` of a run after others."""
    facts = build.facts(measurements=tuple(build.series((value,), metric, step=build.EVAL, phase=Phase.EVAL)))
    history = tuple(
        PastRun(run=f"r{n}", medians={MetricKey(build.EVAL, "", f"eval.{metric}"): one})
        for n, one in enumerate(past)
    )
    policy = Policy(**{"name": "x", "floors": Floors(quality=0.02), **rules})
    alone = Confirmation(run="child", medians={}, missing="is not waited for")
    (result,) = against_baseline(facts, CheckContext(policy=policy, history=history, confirmation=alone))
    return result


USUAL = (0.750, 0.752, 0.749, 0.751, 0.750)


@pytest.mark.parametrize(
    ("value", "past", "metric", "status"),
    [
        (0.751, USUAL, "top1", Status.PASS),
        # Without a confirm run a regression needs twice the limit, or an earlier run that was also worse.
        (0.725, USUAL, "top1", Status.UNCONFIRMED),
        (0.725, (*USUAL, 0.725), "top1", Status.REGRESSION),
        (0.70, USUAL, "top1", Status.REGRESSION),
        (0.70, (*USUAL, 0.70), "top1", Status.REGRESSION),
        # A better value is reported for inspection: too good may mean less work.
        (0.80, USUAL, "top1", Status.IMPROVEMENT),
        # A loss is the other way round.
        (0.80, (*USUAL, 0.80), "loss", Status.REGRESSION),
        (0.70, USUAL, "loss", Status.IMPROVEMENT),
        # A change within the metric's own noise passes.
        (0.70, (0.70, 0.80, 0.75, 0.66, 0.84), "top1", Status.PASS),
    ],
)
def test_accuracy_has_a_history(
    build: ModuleType, value: float, past: tuple[float, ...], metric: str, status: Status
) -> None:
    result = beside(build, value, past, metric)
    assert (result.check, result.metric, result.status) == ("accuracy.history", metric, status), result.reason


def test_a_new_accuracy_states_how_many_runs_are_missing(build: ModuleType) -> None:
    assert beside(build, 0.7, ()).reason == "0.7; 0 of 5 earlier runs for a comparison"
    result = beside(build, 0.7, USUAL[:2])
    assert (result.status, result.reason) == (
        Status.INSUFFICIENT_DATA,
        "0.7, 0.931 x the last run; 2 of 5 earlier runs for a comparison",
    )


def test_whether_accuracy_counts_is_the_policys_and_the_metrics_choice(build: ModuleType) -> None:
    lite = {"accuracy": AccuracyRule(history=False)}
    assert beside(build, 0.70, (*USUAL, 0.70), **lite).gating is False
    own = beside(build, 0.70, (*USUAL, 0.70), metrics={"top1": MetricRule(floor=0.2)})
    assert (own.status, own.gating) == (Status.PASS, True)
    assert beside(build, 0.70, USUAL, metrics={"top1": MetricRule(gating=False)}).gating is False


def test_without_a_target_the_evaluated_metrics_are_listed(build: ModuleType) -> None:
    (result,) = accuracy_final(build.facts(), CheckContext(references=References(suite="sample")))
    assert (result.status, result.values["evaluated"]) == (Status.INSUFFICIENT_DATA, ["top1"])
    assert result.reason == (
        "no accuracy target configured for mobilenet_v3_small in lite_train_lite_infer (metrics evaluated: top1)"
    )


def declared(facts: Facts, accuracy: str, **changes: object) -> CheckResult:
    values = {"model": "mobilenet_v3_small", "metric": "top1", "tolerance": 0.06, "because": "measured"}
    target = Reference(**{**values, **changes})
    references = References(suite="sample", references=(target,))
    prints = Prints(accuracy=accuracy)  # type: ignore[arg-type]
    (result,) = accuracy_final(facts, CheckContext(references=references, prints=prints))
    return result


def printed(build: ModuleType, value: float, unit: str) -> Facts:
    logged = build.series((value,), "top1", step=build.EVAL, rank=-1, phase=Phase.EVAL, epoch=-1, unit=unit)
    return build.facts(measurements=tuple(logged))


@pytest.mark.parametrize("unit", ["%", ""])
def test_declared_unit_overrides_the_unit_of_the_format(build: ModuleType, unit: str) -> None:
    """`Acc@1 0.0625` of 16 images is 1 of 16; the format of the suite `models` assumes per cent."""
    facts = printed(build, 0.0625, unit)
    assert declared(facts, "1", target=0.0625).status is Status.PASS
    assert declared(facts, "1", target=6.25, unit="%", tolerance=1).status is Status.PASS
    assert declared(facts, "%", target=0.0625, unit="%").status is Status.PASS
    if unit == "%":
        assert declared(facts, "", target=0.0625).status is Status.FAILED


@pytest.mark.parametrize(("value", "unit"), [(62.5, "1"), (1.01, "1"), (101.0, "%")])
def test_value_outside_the_declared_unit_fails(build: ModuleType, value: float, unit: str) -> None:
    result = declared(printed(build, value, ""), unit, target=value, unit=unit)
    assert result.status is Status.FAILED
    assert f"{value:g} is not in the declared unit" in result.reason


@pytest.mark.parametrize(("value", "unit"), [(1.0, "1"), (100.0, "%"), (0.5, "%")])
def test_value_at_the_end_of_the_range_is_accepted(build: ModuleType, value: float, unit: str) -> None:
    assert declared(printed(build, value, ""), unit, target=value, unit=unit).status is Status.PASS
