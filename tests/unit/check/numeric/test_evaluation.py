"""accuracy.evaluation: an evaluation step that is far worse than the training's own evaluations is named."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.numeric.evaluation import accuracy_evaluation
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status

FAILED, PASS = Status.FAILED, Status.PASS


def evaluated(
    build: ModuleType, own: tuple[float, ...], last: tuple[float, ...], name: str = "top1", rank: int = 0
) -> Facts:
    """Evaluations within the training and of the evaluation step."""
    kept = [one for one in build.facts().measurements if one.phase is not Phase.EVAL]
    for step, values in ((build.TRAIN, own), (build.EVAL, last)):
        kept += [
            Measurement(
                run=build.RUN,
                step=step,
                node="alpha",
                rank=rank,
                phase=Phase.EVAL,
                metric=name,
                value=value,
                ordinal=number,
            )
            for number, value in enumerate(values)
        ]
    return build.facts(measurements=tuple(kept))


def judged(facts: Facts) -> list[CheckResult]:
    return accuracy_evaluation(facts, CheckContext())


@pytest.mark.parametrize(
    ("name", "own", "last", "status"),
    [
        ("top1", (0.5, 0.9), (0.9,), PASS),
        ("top1", (0.5, 0.9), (0.5,), PASS),  # the best or the last weights
        ("top1", (0.5, 0.9), (0.3,), PASS),
        ("top1", (0.5, 0.9), (0.1,), FAILED),
        ("top1", (0.062,), (0.0,), FAILED),  # real.md B ix
        ("top1", (0.04,), (0.0,), PASS),
        ("top1", (62.0, 70.0), (10.0,), FAILED),
        ("top1", (6.0, 4.5), (0.0,), PASS),  # of 100
        ("loss", (0.5, 0.4), (0.9,), PASS),
        ("loss", (0.5, 0.4), (1.2,), FAILED),
        ("loss", (0.001,), (0.01,), PASS),
    ],
)
def test_evaluation_far_worse_than_the_training_fails(
    build: ModuleType, name: str, own: tuple[float, ...], last: tuple[float, ...], status: Status
) -> None:
    (result,) = judged(evaluated(build, own, last, name))
    assert (result.status, result.step, result.metric) == (status, build.EVAL, name), result.reason


def test_the_reason_has_both_numbers(build: ModuleType) -> None:
    (result,) = judged(evaluated(build, (0.8, 0.9), (0.1,)))
    assert result.reason == "top1 0.1, the training's own 0.9: far worse"
    assert result.values["code"] == "far_worse"


def test_only_metrics_of_both_evaluations_are_compared(build: ModuleType) -> None:
    assert judged(evaluated(build, (), (0.1,))) == []
    assert judged(evaluated(build, (0.9,), ())) == []
    assert judged(evaluated(build, (0.9,), (float("nan"),))) == []
    status = {**build.facts().step_status, build.EVAL: FAILED}
    facts = evaluated(build, (0.9,), (0.1,)).model_copy(update={"step_status": status})
    assert judged(facts) == []


@pytest.mark.parametrize(
    ("unit", "declared", "status"),
    [("", "", FAILED), ("%", "", PASS), ("", "%", PASS), ("%", "1", FAILED)],
    ids=["a share", "a unit in the log", "per cent in the suite file", "the suite file corrects the log format"],
)
def test_half_a_per_cent_is_not_a_share(build: ModuleType, unit: str, declared: str, status: Status) -> None:
    facts = evaluated(build, (0.5,), (0.1,))
    evaluations = [one.model_copy(update={"unit": unit}) for one in facts.measurements if one.phase is Phase.EVAL]
    kept = [one for one in facts.measurements if one.phase is not Phase.EVAL]
    facts = build.facts(measurements=(*kept, *evaluations))
    context = CheckContext(prints=Prints(accuracy=declared)) if declared else CheckContext()
    (result,) = accuracy_evaluation(facts, context)
    assert result.status is status, result.reason
