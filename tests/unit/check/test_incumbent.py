"""Days on which a suite's own script reports success: our checks do not pass on them, and give the reason.

One case per defect of the scripts that ends in a false success. Defects of what they plan (arguments that get
lost, entries that train nothing) are quirks: tests/unit/plan/test_quirks.py.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.config.goldens import GoldenPredictions, Goldens
from tipcflow.config.references import Reference, References
from tipcflow.domain import EndReason, Facts, GoldenKey, OutputFile, Phase, RankReport, Status
from tipcflow.plan.quirks.catalogue import catalogue

FAILED, PASS = Status.FAILED, Status.PASS
Day = Callable[[ModuleType], Facts]


def changed(build: ModuleType, step: str, node: str = "alpha", leg: str = "", **changes: Any) -> tuple[Any, ...]:
    """The records of the good run, of which one is otherwise."""
    return tuple(
        one.model_copy(update=changes) if (one.step, one.node, one.leg) == (step, node, leg) else one
        for one in build.records()
    )


def crash_beside_an_old_log(build: ModuleType) -> Facts:
    """The exit status is that of `cat train.log`, and yesterday's log exists."""
    old = (OutputFile(path="log/norm_train/final.pdparams", exists=True, fresh=False),)
    return build.facts(records=changed(build, build.TRAIN, exit_code=1, outputs=old))


def training_left_out(build: ModuleType) -> Facts:
    """Several GPUs: no training starts and no line is printed; export and inference use leftover files."""
    kept = tuple(one for one in build.records() if one.step != build.TRAIN)
    step_status = {key: word for key, word in build.facts().step_status.items() if key != build.TRAIN}
    return build.facts(
        records=kept,
        step_status=step_status,
        measurements=tuple(m for m in build.measurements() if m.step != build.TRAIN),
    )


def nothing_ran(build: ModuleType) -> Facts:
    """whole_infer without a quantization command does nothing at all."""
    return build.facts(records=(), step_status={}, leg_status={}, measurements=(), predictions={})


def one_node_of_two(build: ModuleType) -> Facts:
    """The addresses are short, so --ips is dropped: each node trains alone."""
    alone = (RankReport(node="alpha", rank=0, world_size=1, backend="gloo", device="cpu", seed=2026),)
    return build.facts(ranks={build.TRAIN: alone})


def hung_and_ended(build: ModuleType) -> Facts:
    """Nothing ends a hung training; when a user does, the next line is printed as a success."""
    late = {"reason": EndReason.DEADLINE, "exit_code": None}
    return build.facts(records=changed(build, build.TRAIN, **late))


def export_on_stale_weights(build: ModuleType) -> Facts:
    """Training failed; the export finds weights of an earlier run and ends with 0."""
    stale = (OutputFile(path="inference.json", exists=True, fresh=False),)
    return build.facts(records=changed(build, build.EXPORT, outputs=stale))


def argument_lost(build: ModuleType) -> Facts:
    """A leg is declared with oneDNN; the argument got lost and it ran without."""
    return build.facts(engine={f"{build.INFER}/{leg}": build.engine(False) for leg in (build.ON, build.OFF)})


def other_weights_exported(build: ModuleType) -> Facts:
    """The export takes the weights of epoch 1: the exported model's predictions differ from the network's."""
    both = build.predictions()
    both[build.EXPORT] = {name: tuple(reversed(row)) for name, row in both[f"{build.INFER}/{build.OFF}"].items()}
    return build.facts(predictions=both)


def log_of_another_run(build: ModuleType) -> Facts:
    """The log was overwritten: a leg's exit code is 0, and nothing in its log is its own."""
    return build.facts(predictions={}, engine={}, autolog={})


def skipped_work(build: ModuleType) -> Facts:
    """`grep failed` finds nothing, because the leg was never started."""
    legs = {f"{build.INFER}/{build.ON}": PASS}
    kept = tuple(one for one in build.records() if one.leg != build.OFF)
    return build.facts(leg_status=legs, records=kept)


def too_few_lines(build: ModuleType) -> Facts:
    """Too few lines were printed to compute a speed: 0 images a second, and a success."""
    kept = tuple(one for one in build.measurements() if one.step != build.TRAIN or one.phase is not Phase.TRAIN)
    return build.facts(measurements=kept)


def died_on_the_second_node(build: ModuleType) -> Facts:
    """Each node has a terminal of its own; the second one was not read."""
    return build.facts(records=changed(build, build.TRAIN, "beta", exit_code=250))


def each_node_for_itself(build: ModuleType) -> Facts:
    """One GPU on each of two nodes: two plain processes, each of which is rank 0 and trains alone."""
    alone = tuple(RankReport(node=node, rank=0, world_size=2, device="cpu", seed=2026) for node in build.NODES)
    return build.facts(ranks={build.TRAIN: alone})


def cut_off_after_five_minutes(build: ModuleType) -> Facts:
    """`timeout 5m` also ends a full-data training; later steps use the weights of an earlier epoch."""
    return build.facts(records=changed(build, build.TRAIN, exit_code=124))


def status_of_the_conversion(build: ModuleType) -> Facts:
    """The converted model does not run, but what is logged is the status of converting it."""
    return build.facts(records=changed(build, build.INFER, leg=build.ON, exit_code=1))


def started_in_the_background(build: ModuleType) -> Facts:
    """A pipeline is started with `&`: its status is that of having been started, and then it is gone."""
    lost = {"reason": EndReason.LOST, "exit_code": None}
    return build.facts(records=changed(build, build.INFER, leg=build.OFF, **lost))


def inference_on_an_old_export(build: ModuleType) -> Facts:
    """The export failed; the script continues, and the model of last week infers correctly."""
    return build.facts(
        records=changed(build, build.EXPORT, exit_code=1, outputs=()),
        step_status={**build.facts().step_status, build.EXPORT: FAILED},
        step_reason={**build.facts().step_reason, build.EXPORT: "ended with 1 on alpha"},
    )


def device_argument_lost(build: ModuleType) -> Facts:
    """One word where two are needed: the second device group trains without --device=gpu, on the CPU."""
    return build.facts()


def image_argument_lost(build: ModuleType) -> Facts:
    """The variable with the images is never set: the leg reads other images, its own default."""
    both = build.predictions()
    both[f"{build.INFER}/{build.ON}"] = {"demo.jpg": (0.9, 0.05, 0.05)}
    return build.facts(predictions=both)


def epochs_lost(build: ModuleType) -> Facts:
    """The mode table is looked up without its mode: 2 epochs, and a network that has hardly learnt."""
    kept = [one for one in build.measurements() if one.metric != "top1"]
    poor = build.series((12.0,), "top1", step=build.EVAL, phase=Phase.EVAL, unit="%", rank=-1)
    return build.facts(measurements=(*kept, *poor))


def lines_of_an_earlier_attempt(build: ModuleType) -> Facts:
    """Logs are appended to: yesterday's lines precede a training that printed nothing."""
    again = tuple(
        one.model_copy(update={"attempt": 2}) if one.step == build.TRAIN else one for one in build.records()
    )
    kept = [one for one in build.measurements() if one.step != build.TRAIN or one.metric == "batch_cost"]
    other = [
        one.model_copy(update={"attempt": 2, "phase": Phase.RESOURCE}) for one in kept if one.step == build.TRAIN
    ]
    return build.facts(records=again, measurements=(*build.measurements(), *other))


def logs_collide(build: ModuleType) -> Facts:
    """Two legs write to one log, because the log's name lacks the option that differs: the first leg's is lost."""
    return build.facts(engine={f"{build.INFER}/{leg}": build.engine(True) for leg in (build.ON, build.OFF)})


def a_missing_line_shifts_all_others(build: ModuleType) -> Facts:
    """A line is missing in the file: the training runs, export and inference do not, and no message reports it."""
    left = {build.TRAIN: PASS, build.EVAL: PASS, "prepare": PASS, build.GPU: Status.NOT_RUN}
    kept = tuple(one for one in build.records() if one.step in left)
    return build.facts(records=kept, step_status=left, leg_status={}, predictions={}, engine={}, autolog={})


def python_false(build: ModuleType) -> Facts:
    """The same in another mode: the command is `python False`, and ends with 2."""
    return build.facts(records=changed(build, build.EXPORT, exit_code=2, outputs=()))


def nothing_was_prepared(build: ModuleType) -> Facts:
    """A download broke off, or the model has no entry in prepare.sh: the data set is incomplete."""
    return build.facts(records=(*build.records(), build.record("prepare", "alpha", exit_code=8)))


def loss_is_nan(build: ModuleType) -> Facts:
    """The script evaluates no metric."""
    kept = [m if m.metric != "loss" else m.model_copy(update={"value": math.nan}) for m in build.measurements()]
    return build.facts(measurements=tuple(kept))


def mismatch_is_only_printed(build: ModuleType) -> Facts:
    """The comparison with the golden results prints that they differ, and ends with 0."""
    both = build.predictions()
    for row in both.values():
        row["b.png"] = (0.1, 0.6, 0.3)
    return build.facts(predictions=both)


DAYS: list[tuple[Day, Status, str]] = [
    (
        crash_beside_an_old_log,
        FAILED,
        "v/train has status pass but did not write log/norm_train/final.pdparams",
    ),
    (training_left_out, FAILED, "v/train was planned and did not run"),
    (nothing_ran, FAILED, "planned and did not run"),
    (one_node_of_two, FAILED, "reported world size 1; declared: 2"),
    (hung_and_ended, FAILED, "(deadline)"),
    (export_on_stale_weights, FAILED, "did not write inference.json"),
    (argument_lost, FAILED, "declared onednn=True, ran with onednn=False"),
    (other_weights_exported, FAILED, "against the network in v/export"),
    (log_of_another_run, FAILED, "log contains no evidence of execution"),
    (skipped_work, FAILED, "planned and did not run"),
    (too_few_lines, FAILED, "logged no training iteration"),
    (died_on_the_second_node, FAILED, "ended with 250 (exited) on beta"),
    (each_node_for_itself, FAILED, "rank 0 ran on alpha and on beta: the nodes did not train as one group"),
    (cut_off_after_five_minutes, FAILED, "ended with 124 (exited) on alpha"),
    (status_of_the_conversion, FAILED, "has status pass but ended with 1 (exited) on alpha"),
    (started_in_the_background, FAILED, "has status pass but ended with None (lost) on alpha"),
    (inference_on_an_old_export, FAILED, "v/export: ended with 1 on alpha"),
    (device_argument_lost, FAILED, "rank 0 on alpha trained with device cpu"),
    (image_argument_lost, FAILED, "4 images have predictions on one side only"),
    (epochs_lost, FAILED, "top1 0.12 (12 % in the log), target 0.75 ± 0.25: too low"),
    (lines_of_an_earlier_attempt, FAILED, "logged no training iteration"),
    (logs_collide, FAILED, "declared onednn=False, ran with onednn=True"),
    (a_missing_line_shifts_all_others, FAILED, "v/export was planned and did not run"),
    (python_false, FAILED, "ended with 2 (exited) on alpha"),
    (nothing_was_prepared, FAILED, "prepare has status pass but ended with 8 (exited) on alpha"),
    (loss_is_nan, FAILED, "loss is nan at epoch 1, iteration 0"),
    (mismatch_is_only_printed, FAILED, "against the golden of"),
]

# The defects, as users see them; each with the days on which the script reports success, and with the quirks that
# make the planner avoid the defect.
DEFECTS: dict[str, tuple[tuple[Day, ...], tuple[str, ...]]] = {
    "several nodes are started by hand": (
        (died_on_the_second_node, one_node_of_two, each_node_for_itself),
        ("every-node-infers", "benchmark-nodes"),
    ),
    "the meaning of addresses and ids depends on their length": (
        (one_node_of_two, each_node_for_itself),
        ("ips-by-length", "launcher-by-length", "ids-by-length", "two-digit-id"),
    ),
    "work is left out without a word": (
        (training_left_out, nothing_ran, skipped_work),
        ("multi-not-trained", "whole-infer-nothing", "klquant-reads-nothing", "legs-skipped"),
    ),
    "the status is that of something else": (
        (crash_beside_an_old_log, status_of_the_conversion, started_in_the_background),
        ("train-status", "onnx-status", "pipeline-background"),
    ),
    "nothing has a deadline, or everything the same": (
        (hung_and_ended, cut_off_after_five_minutes),
        ("time-limit",),
    ),
    "nothing is aborted": (
        (export_on_stale_weights, inference_on_an_old_export),
        ("no-abort",),
    ),
    "arguments get lost": (
        (argument_lost, device_argument_lost, image_argument_lost, epochs_lost),
        ("mode-entry", "paired-missing", "colon-cut", "image-dropped", "epochs-ignored", "export-weights-lost"),
    ),
    "other weights are exported": (
        (other_weights_exported,),
        ("first-epoch-weights", "weights-fallback", "exports-overwrite"),
    ),
    "logs are overwritten, appended to, and have no owner": (
        (log_of_another_run, lines_of_an_earlier_attempt, logs_collide),
        ("benchmark-names", "benchmark-appends"),
    ),
    "lines are known by their position": (
        (a_missing_line_shifts_all_others, python_false),
        ("cut", "section-by-line", "benchmark-empty-line", "benchmark-section", "trailing-blank"),
    ),
    "data are prepared in place, and half a download is kept": ((nothing_was_prepared,), ()),
    "CUDA_VISIBLE_DEVICES leaks": ((), ("cuda-leak", "gpu-unset")),
    "success is the absence of `failed`": (
        (skipped_work, loss_is_nan, mismatch_is_only_printed),
        ("losses-as-text",),
    ),
    "a speed of too few lines is 0, and a success": ((too_few_lines,), ("benchmark-analysis",)),
}
# Where only the planner can prevent it: the environment of each command is part of the plan.
BY_PLAN_ALONE = {"CUDA_VISIBLE_DEVICES leaks"}


def against(build: ModuleType, day: Day, facts: Facts) -> CheckContext:
    """The inputs of that day's checks: the shipped references and goldens, on the requested cluster."""
    target = Reference(model=facts.plan.model, metric="top1", target=0.75, tolerance=0.25, because="measured")
    answers = {
        GoldenKey(build.INFER, "fp32"): GoldenPredictions(
            leg=build.OFF, scores=build.predictions()[f"{build.INFER}/{build.OFF}"]
        )
    }
    known = {
        "chain": "c",
        "mode": "m",
        "run": "r",
        "who": "mia",
        "because": "b",
        "at": "2026-11-21T00:00:00+00:00",
    }
    device = "gpu" if day is device_argument_lost else "cpu"
    return CheckContext(
        run=build.run(environment=f"{device}/two"),
        references=References(suite="sample", references=(target,)),
        goldens=Goldens(**known, seed=build.run().seed, predictions=answers),
    )


@pytest.mark.parametrize(("day", "status", "why"), DAYS, ids=lambda value: getattr(value, "__name__", None))
def test_success_is_never_false(build: ModuleType, day: Day, status: Status, why: str) -> None:
    facts = day(build)
    results = judge(facts, against(build, day, facts))
    output, reason = verdict(facts, results)
    assert output is status, reason
    report = [result.reason for result in results if result.status is status]
    assert any(why in text for text in (reason, *report)), (reason, report)


def test_the_good_day_is_green(build: ModuleType) -> None:
    """Or the cases above would prove nothing."""
    facts = build.facts()
    results = judge(facts, against(build, one_node_of_two, facts))
    assert verdict(facts, results)[0] is PASS
    assert {one.status for one in results if one.check in ("golden.results", "accuracy.final")} == {PASS}


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_defect_has_a_date(defect: str) -> None:
    """Each is met by a check, by a named difference of the plan, or by both; and no day belongs to none."""
    days, quirks = DEFECTS[defect]
    assert days or defect in BY_PLAN_ALONE
    assert set(days) <= {day for day, _, _ in DAYS}
    assert set(quirks) <= set(catalogue())


def test_every_day_is_about_a_defect() -> None:
    assert {day for day, _, _ in DAYS} == {day for days, _ in DEFECTS.values() for day in days}
