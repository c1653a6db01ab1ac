"""The verdict: it fails where a script that greps its log reports success, and vice versa."""

import math
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.domain import CheckResult, EndReason, Facts, Leg, OutputFile, PastRun, RankReport, Status
from tipcflow.parse import lines_of, parse_training, to_measurements

GOLDEN = Path(__file__).parents[2] / "golden" / "check"
PASS, FAILED, INFRA = Status.PASS, Status.FAILED, Status.INFRA_FAILURE


def result(facts: Facts, *history: PastRun) -> tuple[Status, str]:
    return verdict(facts, judge(facts, CheckContext(history=history)))


def replaced(build: ModuleType, step: str, **changes: object) -> tuple[object, ...]:
    return tuple(
        r.model_copy(update=changes) if (r.step, r.node) == (step, "alpha") else r for r in build.records()
    )


def test_all_results_of_a_good_run_are_green(build: ModuleType) -> None:
    facts = build.facts()
    results = judge(facts, CheckContext(run=build.run()))
    text = "".join(f"{r.status} {r.check} [{r.step}|{r.leg}] {r.reason}\n" for r in results)
    status, reason = verdict(facts, results)
    assert_golden(GOLDEN / "good_run.txt", f"{text}= {status}: {reason}\n")


def test_the_word_failed_in_a_log_is_not_a_failure(build: ModuleType) -> None:
    log = (
        "WARNING: connection failed, retrying; 0 failed\n"
        "[Epoch 1, iter: 0] loss: 2.5\n[Epoch 1, iter: 1] loss: 2.0\n"
        "previous run failed with code 1\n[Epoch 1, iter: 2] loss: 1.5\n[Epoch 1, iter: 3] loss: 1.0\n"
    )
    samples = [
        one
        for rank, node in enumerate(build.NODES)
        for one in to_measurements(
            parse_training(lines_of(log)), run=build.RUN, step=build.TRAIN, node=node, rank=rank
        )
    ]
    samples += [one for one in build.measurements() if one.step != build.TRAIN]
    assert result(build.facts(measurements=tuple(samples)))[0] is PASS


def test_a_training_that_exits_1_with_an_old_log(build: ModuleType) -> None:
    """Losses and weights of yesterday lie around; the script's `cat train.log` would end with 0."""
    old = (OutputFile(path="log/norm_train/final.pdparams", exists=True, fresh=False),)
    facts = build.facts(
        records=replaced(build, build.TRAIN, exit_code=1, outputs=old),
        step_status={**build.facts().step_status, build.TRAIN: FAILED},
        step_reason={build.TRAIN: "node alpha ended with 1: ValueError: label 11 is out of range"},
    )
    status, reason = result(facts)
    assert status is FAILED
    assert reason.startswith("v/train: node alpha ended with 1: ValueError: label 11 is out of range")


def test_an_unnoticed_exit_code_1_is_a_failure(build: ModuleType) -> None:
    status, reason = result(build.facts(records=replaced(build, build.TRAIN, exit_code=1)))
    assert status is FAILED
    assert "v/train has status pass but ended with 1 (exited) on alpha" in reason


def test_an_export_that_writes_nothing(build: ModuleType) -> None:
    nothing = (OutputFile(path="inference.json", exists=False),)
    status, reason = result(build.facts(records=replaced(build, build.EXPORT, outputs=nothing)))
    assert (status, "did not write inference.json" in reason) == (FAILED, True)


def test_nan_is_failed_even_when_everything_exits_0(build: ModuleType) -> None:
    broken = [m.model_copy(update={"value": math.nan}) if m.metric == "loss" else m for m in build.measurements()]
    status, reason = result(build.facts(measurements=tuple(broken)))
    assert status is FAILED
    assert reason.startswith("loss.finite (v/train): loss is nan at epoch 1, iteration 0 (node alpha, rank 0)")


def test_a_leftover_process_does_not_hide_a_nan(build: ModuleType) -> None:
    broken = [m.model_copy(update={"value": math.inf}) if m.metric == "loss" else m for m in build.measurements()]
    facts = build.facts(
        measurements=tuple(broken),
        step_status={**build.facts().step_status, build.EVAL: INFRA},
        step_reason={build.EVAL: "1 process was left on alpha"},
    )
    status, reason = result(facts)
    assert status is FAILED
    assert reason.index("loss.finite") < reason.index("1 process was left on alpha")


def test_two_nodes_that_trained_apart_are_a_failure(build: ModuleType) -> None:
    """Short addresses lose `--ips`: every node trains alone and every log looks fine."""
    alone = tuple(RankReport(node=node, rank=0, world_size=1) for node in build.NODES)
    status, reason = result(build.facts(ranks={build.TRAIN: alone}))
    assert (status, "world size 1; declared: 2" in reason) == (FAILED, True)


def test_a_multi_gpu_training_that_was_skipped_silently(build: ModuleType) -> None:
    statuses = {key: status for key, status in build.facts().step_status.items() if key != build.TRAIN}
    facts = build.facts(
        step_status=statuses, measurements=(), records=tuple(r for r in build.records() if r.step != build.TRAIN)
    )
    status, reason = result(facts)
    assert (status, "v/train was planned and did not run" in reason) == (FAILED, True)


def test_a_run_without_any_step_is_a_failure(build: ModuleType) -> None:
    facts = build.facts(step_status={}, leg_status={}, records=(), measurements=(), step_reason={})
    status, _ = result(facts)
    assert status is FAILED


def test_a_node_that_cannot_be_reached_is_not_the_models_fault(build: ModuleType) -> None:
    facts = build.facts(
        step_status={"prepare": INFRA},
        leg_status={},
        records=(),
        measurements=(),
        step_reason={"prepare": "node alpha cannot reach node beta"},
    )
    status, reason = result(facts)
    assert status is INFRA
    assert reason.startswith("prepare: node alpha cannot reach node beta")


def test_a_stopped_run_is_cancelled(build: ModuleType) -> None:
    facts = build.facts(
        step_status={"prepare": PASS, build.TRAIN: Status.CANCELLED},
        leg_status={},
        measurements=(),
        step_reason={build.TRAIN: "stopped by Ctrl-C"},
    )
    assert result(facts) == (Status.CANCELLED, "v/train: stopped by Ctrl-C")


def test_a_failed_leg_keeps_the_others(build: ModuleType) -> None:
    key = f"{build.INFER}/{build.ON}"
    facts = build.facts(
        step_status={**build.facts().step_status, build.INFER: FAILED},
        leg_status={**build.facts().leg_status, key: FAILED},
        step_reason={**build.facts().step_reason, key: "ended with signal 11", build.INFER: "1 of 2 legs failed"},
    )
    results = judge(facts, CheckContext())
    status, reason = verdict(facts, results)
    assert (status, reason) == (FAILED, f"{key}: ended with signal 11")
    assert [r.status for r in results if r.check == "ran.engine"] == [PASS]


def test_open_questions_do_not_make_a_run_red(build: ModuleType) -> None:
    facts = build.facts(engine={}, predictions={})
    status, reason = result(facts)
    assert status is PASS
    assert "insufficient_data" in reason


@pytest.mark.parametrize(
    ("status", "gating", "expected"),
    [
        (Status.REGRESSION, True, Status.REGRESSION),
        (Status.REGRESSION, False, PASS),
        (Status.UNCONFIRMED, True, Status.UNCONFIRMED),
        (Status.UNCONFIRMED, False, PASS),
        (Status.IMPROVEMENT, True, Status.IMPROVEMENT),
        (Status.INSUFFICIENT_DATA, True, PASS),
    ],
)
def test_only_gating_checks_count(build: ModuleType, status: Status, gating: bool, expected: Status) -> None:
    results = (CheckResult(check="speed.ips", status=status, reason="70 of 100", gating=gating),)
    assert verdict(build.facts(), results)[0] is expected


def test_at_most_three_problems_are_named_worst_first(build: ModuleType) -> None:
    results = tuple(
        CheckResult(check=f"c{number}", status=status, reason="r")
        for number, status in enumerate([Status.REGRESSION, INFRA, FAILED, FAILED, Status.REGRESSION])
    )
    assert verdict(build.facts(), results) == (FAILED, "c2: r; c3: r; c0: r; and 2 more")


def test_an_unconfirmed_change_precedes_the_nodes_fault_in_the_reason(build: ModuleType) -> None:
    results = tuple(
        CheckResult(check=f"c{number}", status=status, reason="r")
        for number, status in enumerate([INFRA, Status.UNCONFIRMED, Status.REGRESSION])
    )
    assert verdict(build.facts(), results) == (Status.REGRESSION, "c2: r; c1: r; c0: r")
    assert verdict(build.facts(), results[:2]) == (Status.UNCONFIRMED, "c1: r; c0: r")


def test_a_stopped_run_with_a_suspected_metric_is_cancelled(build: ModuleType) -> None:
    facts = build.facts(
        step_status={**build.facts().step_status, build.EVAL: Status.CANCELLED},
        step_reason={build.EVAL: "stopped"},
    )
    doubt = CheckResult(check="speed.ips", status=Status.UNCONFIRMED, reason="70 of 100")
    assert verdict(facts, (doubt,))[0] is Status.CANCELLED


def test_summary_of_the_steps_is_not_repeated_in_the_reason(build: ModuleType) -> None:
    facts = build.facts(
        step_status={**build.facts().step_status, build.EVAL: FAILED}, step_reason={build.EVAL: "exit code 1"}
    )
    other = CheckResult(check="ran.steps", status=FAILED, reason="other words", values={"summary": True})
    assert verdict(facts, (other,)) == (FAILED, f"{build.EVAL}: exit code 1")
    own = other.model_copy(update={"values": {}, "reason": "did not train: x"})
    assert verdict(facts, (own,)) == (FAILED, f"{build.EVAL}: exit code 1; ran.steps: did not train: x")
    assert verdict(build.facts(), (other,)) == (FAILED, "ran.steps: other words"), "where no step says anything"


def young(check: str, metric: str, n: int) -> CheckResult:
    values = {"n": n, "needed": 5}
    return CheckResult(check=check, status=Status.INSUFFICIENT_DATA, reason="r", metric=metric, values=values)


def test_first_run_lists_unevaluated_checks(build: ModuleType) -> None:
    passed = CheckResult(check="loss.finite", status=PASS, reason="r")
    numbers = [young("speed.batch_cost", "batch_cost", 0), young("speed.inference_time", "inference_time", 0)]
    numbers += [young("memory.peak_rss", "peak_rss", 0), young("baseline.loss", "loss", 0)]
    unanswered = CheckResult(check="golden.results", status=Status.INSUFFICIENT_DATA, reason="r")
    facts = build.facts()
    gpu = facts.plan.steps[-1].model_copy(update={"id": "v/infer_gpu", "legs": two_on_a_gpu(facts)})
    plan = facts.plan.model_copy(update={"steps": (*facts.plan.steps, gpu)})
    facts = facts.model_copy(update={"plan": plan, "step_status": {**facts.step_status, gpu.id: Status.NOT_RUN}})
    assert verdict(facts, (passed, *numbers, unanswered, unanswered)) == (
        PASS,
        "1 checks passed; not evaluated (no earlier runs): speed, memory and loss; "
        "insufficient_data: golden.results; 3 GPU legs not run",
    )
    later = (passed, young("speed.batch_cost", "batch_cost", 3))
    assert (
        verdict(build.facts(), later)[1]
        == "1 checks passed; not evaluated (3 of 5 earlier runs for a comparison): speed; 1 GPU leg not run"
    )


def two_on_a_gpu(facts: Facts) -> tuple[Leg, ...]:
    leg = next(leg for step in facts.plan.steps for leg in step.legs)
    return tuple(leg.model_copy(update={"id": f"gpu_{number}", "device": "gpu"}) for number in range(2))


def test_a_step_over_its_deadline_has_its_own_verdict(build: ModuleType) -> None:
    facts = build.facts(
        records=replaced(build, build.TRAIN, reason=EndReason.DEADLINE, exit_code=None),
        step_status={**build.facts().step_status, build.TRAIN: FAILED},
        step_reason={build.TRAIN: "node beta passed its deadline of 600 s"},
    )
    assert result(facts)[0] is FAILED


def test_reason_that_quotes_a_log_is_one_line(build: ModuleType) -> None:
    long = "exit code 1 on node alpha:\n  File x\n" + "y " * 400
    facts = build.facts(
        step_status={**build.facts().step_status, build.TRAIN: FAILED}, step_reason={build.TRAIN: long}
    )
    _, reason = result(facts)
    assert reason.startswith("v/train: exit code 1 on node alpha: File x y y")
    assert "\n" not in reason
    assert len(reason.split("; ")[0]) <= 300
