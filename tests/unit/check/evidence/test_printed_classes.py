"""A class that the log names is compared with the outputs that the framework probe observed."""

from types import ModuleType

import pytest

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.result import ran_evidence
from tipcflow.check.predictions.scores import distance, too_alike
from tipcflow.config.policy import Tolerance
from tipcflow.domain import Facts, ProcessReport, Status
from tipcflow.domain.keys import PredictionKey


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
    assert (
        distance(PredictionKey("a"), only(3), only(4), Tolerance(rtol=0, atol=1)).problem
        == "class 3 against class 4"
    )


def suspected(build: ModuleType, facts: Facts) -> list[tuple[Status, str]]:
    results = ran_evidence(facts, CheckContext())
    return [(one.status, one.reason) for one in results if one.status in (Status.FAILED, Status.UNCONFIRMED)]


@pytest.mark.parametrize("scores", [{"0.jpg": only(3)}, {"output: result 1": (0.5,)}])
@pytest.mark.parametrize(
    ("reports", "status", "reason"),
    [
        ((), Status.UNCONFIRMED, "no process of the leg used a paddle.inference predictor (framework probe)"),
        (
            (ProcessReport(framework="paddle", steps=3),),
            Status.UNCONFIRMED,
            "no process of the leg used a paddle.inference predictor",
        ),
        (
            (ProcessReport(framework="paddle", predictors=({"gpu": 0},)),),
            Status.FAILED,
            "its paddle.inference predictor was never run (framework probe)",
        ),
        ((ProcessReport(framework="paddle", notes=("install: error",)),), None, ""),
        ((ProcessReport(framework="paddle", predictors=({"gpu": 0},), predictions=1),), None, ""),
    ],
)
def test_printed_results_need_a_predictor(
    build: ModuleType,
    scores: dict[str, tuple[float, ...]],
    reports: tuple[ProcessReport, ...],
    status: Status | None,
    reason: str,
) -> None:
    facts = unseen(build, scores, reports)
    found = suspected(build, facts)
    assert [one for one, _ in found] == ([status] if status else []), found
    source = next(iter(scores)).partition(":")[0]
    place = f"the leg's log has results (predictions in configs/suites/sample.yaml), such as of {source}, but "
    assert not status or f"{place}{reason}" in found[0][1]


def unseen(
    build: ModuleType, scores: dict[str, tuple[float, ...]], reports: tuple[ProcessReport, ...], **more: object
) -> Facts:
    """A run whose legs print results, with reports of the probe in their processes."""
    legs = {build.ON, build.OFF}
    kept = [record for record in build.records() if record.leg not in legs]
    own = [
        build.record(build.INFER, "alpha", leg, **{"probed": True, "processes": reports} | more)
        for leg in sorted(legs)
    ]
    predictions = {f"{build.INFER}/{leg}": scores for leg in legs}
    nodes = [fact.model_copy(update={"frameworks": {"paddle": "3.3.1"}}) for fact in build.facts().node_facts]
    facts: Facts = build.facts(predictions=predictions, records=(*kept, *own), node_facts=tuple(nodes))
    return facts


def test_without_the_probe_printed_results_are_accepted(build: ModuleType) -> None:
    assert suspected(build, unseen(build, {"0.jpg": only(3)}, (), probed=False)) == []


def test_scores_of_all_classes_are_not_a_printed_class(build: ModuleType) -> None:
    assert suspected(build, unseen(build, {"0.jpg": (0.25, 0.75)}, ())) == []


def test_nodes_without_paddle_have_no_predictor(build: ModuleType) -> None:
    facts = unseen(build, {"0.jpg": only(3)}, ())
    nodes = tuple(fact.model_copy(update={"frameworks": {"torch": "2.9"}}) for fact in facts.node_facts)
    assert suspected(build, facts.model_copy(update={"node_facts": nodes})) == []


def test_a_result_is_not_a_class() -> None:
    """Nearly equal coordinates may change their order, and a single number is not the score of class 0."""
    result = PredictionKey("output", 1)
    box = (result, (0.0, 0.9, 10.00001, 10.0), (0.0, 0.9, 10.0, 10.00001))
    assert distance(*box, Tolerance()).problem == ""
    assert distance(PredictionKey("a.jpg"), *box[1:], Tolerance()).problem.startswith("class 2 against class 3")
    other = distance(result, (0.7,), (0.5,), Tolerance())
    assert other.problem.startswith("values differ by 0.2")
    assert distance(result, (0.7,), (0.5, 0.2), Tolerance()).problem == "1 values against 2"


def test_equal_results_prove_little() -> None:
    same = {PredictionKey("output", number): (0.5,) for number in (1, 2)}
    assert too_alike(same, 2) == "all 2 results are equal: parity is not meaningful"
    assert too_alike({**same, PredictionKey("output", 3): (0.6,)}, 2) == ""
    assert (
        too_alike({PredictionKey("a.jpg"): (0.1, 0.9)}, 2)
        == "all 1 images have the same class: parity is not meaningful"
    )
