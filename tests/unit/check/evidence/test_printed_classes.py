"""A class that the log names is compared with the outputs that the framework probe observed."""

from types import ModuleType

import pytest

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.result import ran_evidence
from tipcflow.check.predictions.scores import distance
from tipcflow.config.policy import Tolerance
from tipcflow.domain import Facts, ProcessReport, Status


def only(number: int) -> tuple[float, ...]:
    """The prediction of a line that names a class and no other scores."""
    return (*[0.0] * number, 1.0)


def run(build: ModuleType, named: list[int], observed: tuple[int, ...]) -> Facts:
    """A run whose legs name these classes, one per image."""
    report = ProcessReport(framework="paddle", predictions=1, classes=observed)
    legs = {build.ON, build.OFF}
    kept = [record for record in build.records() if record.leg not in legs]
    own = [build.record(build.INFER, "alpha", leg, probed=True, processes=(report,)) for leg in sorted(legs)]
    scores = {f"{place}.jpg": only(number) for place, number in enumerate(named)}
    predictions = {f"{build.INFER}/{leg}": scores for leg in legs}
    facts: Facts = build.facts(predictions=predictions, records=(*kept, *own))
    return facts


@pytest.mark.parametrize(
    ("named", "observed"),
    [
        ([3], (3,)),
        ([3, 4], (4, 3)),
        ([3], (1, 2, 3)),  # a warm-up
        ([3], ()),  # not a table of scores, or no probe
        ([3], (4, -1)),  # a tie
        ([3, 3, 3], (3, 3, 3)),  # the same class is not the same output
    ],
)
def test_classes_of_the_outputs_pass(build: ModuleType, named: list[int], observed: tuple[int, ...]) -> None:
    results = ran_evidence(run(build, named, observed), CheckContext())
    assert [one.reason for one in results if one.status is Status.FAILED] == []


@pytest.mark.parametrize(
    ("named", "observed", "reason"),
    [
        ([4], (3,), "the log names class 4 for 0.jpg, but the predictor's outputs have class 3"),
        (
            [3, 3],
            (3, 5),
            "the log names class 3 for 2 of 2 images, but it is the class of 1 of",
        ),
    ],
)
def test_other_classes_fail(build: ModuleType, named: list[int], observed: tuple[int, ...], reason: str) -> None:
    results = ran_evidence(run(build, named, observed), CheckContext())
    assert any(reason in one.reason for one in results if one.status is Status.FAILED), results


def test_legs_that_name_different_classes_differ() -> None:
    assert distance("a", only(3), only(4), Tolerance(rtol=0, atol=1)).problem == "class 3 against class 4"
