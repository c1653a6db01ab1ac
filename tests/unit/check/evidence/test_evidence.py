"""Expected evidence: each missing piece is named, honest runs are not named."""

import math
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.evidence import evidence_section, expected, found_in, ran_evidence, ran_removed
from tipcflow.config.policy import Policy
from tipcflow.config.suite import Prints
from tipcflow.domain import (
    AutologReport,
    CheckResult,
    Declared,
    Evidence,
    Facts,
    LegKey,
    PastRun,
    Phase,
    Source,
    Status,
    numbers_of,
)

BEGAN = 1_795_000_000.0
PASS, FAILED, INFRA = Status.PASS, Status.FAILED, Status.INFRA_FAILURE


def one(results: list[CheckResult]) -> CheckResult:
    (result,) = results
    return result


def judged(facts: Facts, **context: object) -> CheckResult:
    return one(ran_evidence(facts, CheckContext(**context)))


def with_length(build: ModuleType, **length: int) -> dict[str, object]:
    plan = build.plan()
    train = plan.step(build.TRAIN).model_copy(update=length)
    return {"plan": plan.model_copy(update={"steps": (plan.steps[0], train, *plan.steps[2:])})}


def without(build: ModuleType, *metrics: str, step: str = "") -> tuple[object, ...]:
    return tuple(
        one for one in build.measurements() if one.metric not in metrics and (not step or one.step != step)
    )


def test_complete_run_has_all_evidence(build: ModuleType) -> None:
    result = judged(build.facts(**with_length(build, epochs=2)))
    assert (result.status, result.values["expected"]) == (PASS, 8)
    states = {piece["state"] for piece in evidence_section(build.facts(), CheckContext())}
    assert states == {"found"}


def test_an_evaluation_that_prints_nothing(build: ModuleType) -> None:
    facts = build.facts(measurements=without(build, step=build.EVAL))
    result = judged(facts)
    assert (result.status, result.step, result.reason) == (FAILED, build.EVAL, "the evaluation printed no metric")
    assert judged(facts, prints=Prints(evaluation=False)).status is PASS
    assert verdict(facts, judge(facts, CheckContext()))[0] is FAILED


def test_failed_step_needs_no_evidence(build: ModuleType) -> None:
    facts = build.facts(
        measurements=without(build, step=build.EVAL),
        step_status={**build.facts().step_status, build.EVAL: FAILED},
    )
    assert judged(facts).status is PASS


@pytest.mark.parametrize("metric", ["batch_cost", "inference_time", "top1"])
def test_metric_of_all_earlier_runs_is_required(build: ModuleType, metric: str) -> None:
    history = tuple(PastRun(run=f"r{n}", medians=numbers_of(build.measurements())) for n in range(5))
    assert judged(build.facts(), history=history).status is PASS
    facts = build.facts(measurements=without(build, metric))
    results = ran_evidence(facts, CheckContext(history=history))
    assert {one.status for one in results} == {FAILED}
    assert any(f"{metric} is missing or not a finite number" in one.reason for one in results)
    allowed = CheckContext(history=history, prints=Prints(may_be_missing=("*",), evaluation=False))
    assert one(ran_evidence(facts, allowed)).status is PASS
    few = [one for one in ran_evidence(facts, CheckContext(history=history[:4])) if metric in one.reason]
    assert not few, "four runs are no history"


@pytest.mark.parametrize(("metric", "value"), [("top1", math.nan), ("inference_time", 0.0)])
def test_non_finite_number_is_missing_evidence(build: ModuleType, metric: str, value: float) -> None:
    history = tuple(PastRun(run=f"r{n}", medians=numbers_of(build.measurements())) for n in range(5))
    outliers = tuple(
        one.model_copy(update={"value": value}) if one.metric == metric else one for one in build.measurements()
    )
    results = ran_evidence(build.facts(measurements=outliers), CheckContext(history=history))
    assert any(metric in one.reason and one.status is FAILED for one in results)


def test_evidence_that_runs_kept_is_expected_again(build: ModuleType) -> None:
    found = tuple(sorted(found_in(build.facts(), Prints())))
    history = tuple(PastRun(run=f"r{n}", found=found) for n in range(5))
    pieces = expected(build.plan(), Prints(), history)
    assert len({piece.key for piece in pieces}) == len(pieces)
    predictions = [piece for piece in pieces if piece.kind is Evidence.PREDICTIONS]
    assert {piece.source for piece in predictions} == {Source.HISTORY}
    result = judged(build.facts(predictions={}), history=history)
    assert result.status is FAILED
    assert result.reason.startswith(f"leg {build.ON}: the log has no prediction; each of the last 5 accepted runs")


def test_runs_without_a_leg_do_not_count_for_the_leg(build: ModuleType) -> None:
    found = tuple(sorted(found_in(build.facts(), Prints())))
    whole = [PastRun(run=f"r{n}", found=found) for n in range(5)]
    parts = frozenset({LegKey(build.TRAIN), LegKey(build.INFER), LegKey(build.INFER, build.OFF)})
    kept = tuple(key for key in found if key.leg != build.ON)
    history = (*whole, *(PastRun(run=f"s{n}", found=kept, parts=parts) for n in range(5)))
    facts = build.facts(measurements=without(build, "inference_time"))
    result = judged(facts, history=history)
    why = "inference_time is missing or not a finite number; each of the last 5 accepted runs"
    assert result.reason == f"leg {build.ON}: {why} with this leg has it, leg {build.OFF}: {why} has it"
    fewer = judged(facts, history=history[1:])
    assert f"leg {build.ON}" not in fewer.reason, "four runs are no history"


def test_leg_without_the_metrics_of_other_legs_is_named(build: ModuleType) -> None:
    kept = {f"{build.INFER}/{build.OFF}": build.predictions()[f"{build.INFER}/{build.OFF}"]}
    result = judged(build.facts(predictions=kept))
    assert result.reason == f"leg {build.ON}: the log has no prediction; 1 other legs have one"
    assert result.status is FAILED


def test_the_same_output_for_every_image_is_a_failure(build: ModuleType) -> None:
    scores = dict.fromkeys(("a.png", "b.png", "c.png"), (0.9, 0.1))
    legs = {f"{build.INFER}/{leg}": scores for leg in (build.ON, build.OFF)}
    result = judged(build.facts(predictions=legs))
    assert result.status is FAILED
    assert "all images have identical scores" in result.reason
    alike = {"a.png": (0.9, 0.1), "b.png": (0.91, 0.09), "c.png": (0.92, 0.08)}
    assert judged(build.facts(predictions=dict.fromkeys(legs, alike))).status is PASS, "one class, other scores"


def silent(build: ModuleType, *ranks: tuple[str, int], world: int = 4) -> Facts:
    """A training of four ranks on two nodes; those given log, none prints a rank line."""
    plan = build.plan()
    train = plan.step(build.TRAIN).model_copy(update={"world_size": world, "epochs": 2})
    logged = [one for node, rank in ranks for one in build.series(build.CURVE, node=node, rank=rank)]
    rest = [one for one in build.measurements() if one.step != build.TRAIN]
    steps = (plan.steps[0], train, *plan.steps[2:])
    return build.facts(plan=plan.model_copy(update={"steps": steps}), measurements=(*logged, *rest), ranks={})


@pytest.mark.parametrize(
    ("ranks", "missing"),
    [
        ([("alpha", 0)], ""),
        ([("alpha", 0), ("beta", 2)], ""),
        ([("alpha", 0), ("alpha", 1), ("beta", 2), ("beta", 3)], ""),
        ([("alpha", 0), ("alpha", 1)], "rank 2 on node beta logged no iteration (logged by 2 other ranks)"),
        ([("alpha", 0), ("alpha", 1), ("beta", 2)], "rank 3 on node beta logged no iteration (logged by 3 "),
        ([("alpha", 1)], "rank 0 on node alpha logged no iteration"),
    ],
)
def test_ranks_that_log_and_ranks_that_do_not(
    build: ModuleType, ranks: list[tuple[str, int]], missing: str
) -> None:
    result = judged(silent(build, *ranks))
    assert (result.status is FAILED) is bool(missing)
    assert missing in result.reason


def test_a_rank_that_logs_iterations_without_a_loss(build: ModuleType) -> None:
    mute = [one for one in build.measurements() if one.rank != 1]
    speed = build.series((0.5,) * 8, "batch_cost", node="beta", rank=1)
    result = judged(build.facts(measurements=(*mute, *speed)))
    output = "rank 1 on node beta logged no loss (logged by 1 other ranks)"
    assert (result.status, result.reason) == (FAILED, output)


@pytest.mark.parametrize("trainer", ["pact_train", "fpgm_train"])
def test_quantised_or_pruned_training_must_leave_the_usual_evidence(build: ModuleType, trainer: str) -> None:
    plan = build.plan()
    (variant,) = plan.variants
    slim = plan.model_copy(update={"variants": (variant.model_copy(update={"trainer": trainer}),)})
    assert expected(slim, Prints()) == expected(plan, Prints())
    mute = judge(build.facts(plan=slim, measurements=without(build, "loss")), CheckContext())
    assert {one.check: one.status for one in mute}["loss.finite"] is FAILED
    nan = (*without(build, "loss"), *build.series((math.nan,) * 8))
    assert {one.check: one.status for one in judge(build.facts(plan=slim, measurements=nan), CheckContext())}[
        "loss.finite"
    ] is FAILED


def test_truncated_log_is_an_infra_failure(build: ModuleType) -> None:
    note = "main.log on node alpha has 9 B: only the first 4 B were fetched"
    result = judged(build.facts(measurements=without(build, step=build.EVAL), cut={build.EVAL: (note,)}))
    assert (result.status, result.reason) == (INFRA, f"the evaluation printed no metric ({note})")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": 0}, "final.pdparams on node alpha is empty"),
        ({"size": 9}, "final.pdparams on node alpha has only 9 B"),
        ({"damage": "is cut off"}, "final.pdparams on node alpha is cut off"),
    ],
)
def test_weights_that_cannot_be_weights(build: ModuleType, changes: dict[str, object], words: str) -> None:
    records = [
        one.model_copy(update={"outputs": tuple(o.model_copy(update=changes) for o in one.outputs)})
        if one.step == build.TRAIN
        else one
        for one in build.records()
    ]
    result = judged(build.facts(records=tuple(records)))
    assert result.status is FAILED
    assert words in result.reason


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (AutologReport(at=BEGAN + 5), ""),
        (AutologReport(at=BEGAN + 5 + 8 * 3600), ""),
        (AutologReport(at=BEGAN + 5 - 3.5 * 3600), ""),
        (AutologReport(), ""),
        (AutologReport(at=BEGAN + 5, timed=False), "its AutoLog report ends before it has a time"),
        (AutologReport(at=BEGAN - 400), "its AutoLog report was not printed while the leg ran"),
        (AutologReport(at=BEGAN - 5 * 86400), "its AutoLog report has a date other than the leg's"),
    ],
)
def test_an_old_or_cut_report_proves_nothing(build: ModuleType, report: AutologReport, why: str) -> None:
    key = f"{build.INFER}/{build.ON}"
    records = [one.model_copy(update={"started_at": BEGAN, "ended_at": BEGAN + 10}) for one in build.records()]
    result = judged(build.facts(reports={key: report}, records=tuple(records)))
    assert (result.status is FAILED) is bool(why)
    assert why in result.reason


def removed(build: ModuleType, **rule: object) -> tuple[Facts, CheckContext]:
    """The tested ref declares neither the evaluation nor the leg with oneDNN."""
    plan = build.plan()
    steps = []
    for step in plan.steps:
        if step.id == build.INFER:
            step = step.model_copy(update={"legs": step.legs[1:]})
        if step.id != build.EVAL:
            steps.append(step)
    facts = build.facts(plan=plan.model_copy(update={"steps": tuple(steps)}))
    context = CheckContext(policy=Policy(name="x", **rule), before=Declared.of("earlier", plan))
    return facts, context


def test_removed_declarations_come_first_in_the_reason(build: ModuleType) -> None:
    facts, context = removed(build)
    result = one(ran_removed(facts, context))
    assert result.status is FAILED
    status, reason = verdict(facts, judge(facts, context))
    assert status is FAILED
    gone = f"1 step removed: {build.EVAL}, 1 leg removed: {build.INFER}/{build.ON} since run earlier"
    assert reason.startswith(gone)


def test_verdict_reports_removals_that_the_policy_allows(build: ModuleType) -> None:
    facts, context = removed(build, removed="allow")
    status, reason = verdict(facts, judge(facts, context))
    assert status is PASS
    assert reason.startswith("1 step removed: v/eval, 1 leg removed")
    assert "checks passed" in reason


def test_a_confirm_run_does_a_part_on_purpose(build: ModuleType) -> None:
    facts, context = removed(build)
    confirm = CheckContext(before=context.before, run=build.run(trigger="confirm"))
    assert ran_removed(facts, confirm) == []


def test_a_removed_variant_is_named_once(build: ModuleType) -> None:
    plan = build.plan()
    facts = build.facts(plan=plan.model_copy(update={"steps": plan.steps[:1], "variants": ()}))
    result = one(ran_removed(facts, CheckContext(before=Declared.of("earlier", plan))))
    assert result.reason.startswith("1 variant removed: v since run earlier")


def test_an_evaluation_within_the_training_suffices_without_its_own_step(build: ModuleType) -> None:
    """An evaluation inside the training alone is enough where no evaluation step is planned."""
    plan = build.plan()
    steps = tuple(step for step in plan.steps if step.id != build.EVAL)
    kept = [one for one in build.measurements() if one.phase is not Phase.EVAL]
    facts = build.facts(plan=plan.model_copy(update={"steps": steps}), measurements=tuple(kept))
    assert judged(facts).status is PASS
