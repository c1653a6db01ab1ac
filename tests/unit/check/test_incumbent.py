"""Where a suite's own script says success: the same day, told to our checks, is not green, and it is said why.

One case per defect of the scripts that ends in a false success. Defects of what they plan (arguments that get
lost, entries that train nothing) are quirks: tests/unit/plan/test_quirks.py.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.domain import EndReason, Facts, OutputFile, Phase, RankReport, Status

FAILED, PASS = Status.FAILED, Status.PASS
Day = Callable[[ModuleType], Facts]


def changed(build: ModuleType, step: str, node: str = "alpha", leg: str = "", **changes: Any) -> tuple[Any, ...]:
    """The records of the good run, of which one is otherwise."""
    return tuple(
        one.model_copy(update=changes) if (one.step, one.node, one.leg) == (step, node, leg) else one
        for one in build.records()
    )


def crash_beside_an_old_log(build: ModuleType) -> Facts:
    """The status is that of `cat train.log`, and yesterday's log lies there."""
    old = (OutputFile(path="log/norm_train/final.pdparams", exists=True, fresh=False),)
    return build.facts(records=changed(build, build.TRAIN, exit_code=1, outputs=old))


def training_left_out(build: ModuleType) -> Facts:
    """Several GPUs: no training is started, without a line; export and inference use what lies around."""
    kept = tuple(one for one in build.records() if one.step != build.TRAIN)
    step_status = {key: word for key, word in build.facts().step_status.items() if key != build.TRAIN}
    return build.facts(
        records=kept,
        step_status=step_status,
        measurements=tuple(m for m in build.measurements() if m.step != build.TRAIN),
    )


def nothing_ran(build: ModuleType) -> Facts:
    """whole_infer without a quantisation command does nothing at all."""
    return build.facts(records=(), step_status={}, leg_status={}, measurements=(), predictions={})


def one_node_of_two(build: ModuleType) -> Facts:
    """The addresses are short, so --ips is dropped: each node trains alone."""
    alone = (RankReport(node="alpha", rank=0, world_size=1, backend="gloo", device="cpu", seed=2026),)
    return build.facts(ranks={build.TRAIN: alone})


def hung_and_ended(build: ModuleType) -> Facts:
    """Nothing ends a hung training; when somebody does, the next line is printed as a success."""
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
    """The export takes the weights of epoch 1: what it exported answers otherwise than the network."""
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
    """Each node has a terminal of its own; nobody looked at the second one."""
    return build.facts(records=changed(build, build.TRAIN, "beta", exit_code=250))


DAYS: list[tuple[Day, Status, str]] = [
    (
        crash_beside_an_old_log,
        FAILED,
        "v/train is said to have passed but did not write log/norm_train/final.pdparams",
    ),
    (training_left_out, FAILED, "v/train was planned and left no trace"),
    (nothing_ran, FAILED, "planned and left no trace"),
    (one_node_of_two, FAILED, "says that it is one of 1; 2 were declared"),
    (hung_and_ended, FAILED, "(deadline)"),
    (export_on_stale_weights, FAILED, "did not write inference.json"),
    (argument_lost, FAILED, "declared onednn=True, really False"),
    (other_weights_exported, FAILED, "against the network in v/export"),
    (log_of_another_run, FAILED, "printed nothing that proves that it ran"),
    (skipped_work, FAILED, "left no trace of having run"),
    (too_few_lines, FAILED, "logged no training iteration"),
    (died_on_the_second_node, FAILED, "ended with 250 (exited) on beta"),
]


@pytest.mark.parametrize(("day", "status", "why"), DAYS, ids=lambda value: getattr(value, "__name__", None))
def test_no_false_success(build: ModuleType, day: Day, status: Status, why: str) -> None:
    facts = day(build)
    results = judge(facts, CheckContext(run=build.run()))
    said, reason = verdict(facts, results)
    assert said is status, reason
    told = [result.reason for result in results if result.status is status]
    assert any(why in text for text in (reason, *told)), (reason, told)


def test_the_good_day_is_green(build: ModuleType) -> None:
    """Or the cases above would prove nothing."""
    facts = build.facts()
    assert verdict(facts, judge(facts, CheckContext(run=build.run())))[0] is PASS
