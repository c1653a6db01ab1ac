"""Policies with several confirm runs: a regression needs all of them, and each follows one that agrees."""

import pytest

from tipcflow.check.baseline.comparison import BaselineComparison, Confirm
from tipcflow.check.baseline.run_by_run import JudgedPoint, judge_run_by_run
from tipcflow.check.detect import Point, Series
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import MetricKey, Status
from tipcflow.domain.numbers.measured import Measured
from tipcflow.domain.run_documents import NumbersDocument

POLICY = Policy(name="three", confirm_runs=3)
PAST = [0.2 * (1 + 0.01 * (at % 5 - 2)) for at in range(20)]
# Beyond the limit of 25 %.
SLOW = 0.3
KEY = MetricKey("train", "", "batch_cost")


def judged(*confirms: float, missing: str = "", rule: MetricRule | None = None) -> tuple[Status, str, Measured]:
    confirm = Confirm(confirms[0] if confirms else None, missing, more=confirms[1:])
    question = BaselineComparison("batch_cost", SLOW, PAST, rule or MetricRule(), POLICY, confirm)
    status, reason = question.judge()
    return status, reason, Measured(question.values)


def points(*confirms: float) -> list[JudgedPoint]:
    made = [Point(f"r{at}", "n", value) for at, value in enumerate(PAST)]
    last = Point("r20", "n", SLOW, confirms[0] if confirms else None, confirms[1:])
    return list(judge_run_by_run(Series("s", "s", False, (*made, last)), "batch_cost", POLICY))


@pytest.mark.parametrize("confirms", [(SLOW,), (SLOW, 0.31)])
def test_change_that_fewer_confirm_runs_show_requests_another(confirms: tuple[float, ...]) -> None:
    status, reason, measured = judged(*confirms)
    assert (status, measured.needs_confirm, measured.needs_another) == (Status.UNCONFIRMED, True, True)
    assert f"shown by {len(confirms)} of 3 confirm runs: run again to confirm or refute it" in reason


def test_first_request_is_not_a_further_one() -> None:
    status, _, measured = judged()
    assert (status, measured.needs_confirm, measured.needs_another) == (Status.UNCONFIRMED, True, False)


def test_change_that_all_confirm_runs_show_is_a_regression() -> None:
    status, reason, measured = judged(SLOW, 0.31, 0.29)
    assert (status, measured.needs_confirm) == (Status.REGRESSION, False)
    assert reason.endswith("and 3 confirm runs measured 0.3 s, 0.31 s, 0.29 s")


def test_further_confirm_run_refutes_a_change() -> None:
    status, reason, measured = judged(SLOW, 0.2, 0.2)
    assert (status, measured.needs_confirm) == (Status.PASS, False)
    assert reason.endswith("but 3 confirm runs measured 0.3 s, 0.2 s, 0.2 s: not confirmed")


@pytest.mark.parametrize("second", [0.19, 0.2, 0.21])
def test_two_confirm_runs_that_disagree_request_a_third(second: float) -> None:
    status, reason, measured = judged(SLOW, second)
    assert (status, measured.needs_confirm, measured.needs_another) == (Status.UNCONFIRMED, True, True)
    assert reason.endswith(f"2 confirm runs measured 0.3 s, {second} s: run again to confirm or refute it")


@pytest.mark.parametrize("second", [0.19, 0.2])
def test_two_confirm_runs_that_disagree_are_unconfirmed_without_a_third(second: float) -> None:
    status, reason, measured = judged(SLOW, second, missing="the confirm run c3 is cancelled")
    assert (status, measured.needs_confirm) == (Status.UNCONFIRMED, False)
    assert reason.endswith(f"2 confirm runs measured 0.3 s, {second} s: shown by 1 of 2")


@pytest.mark.parametrize(("runs", "status"), [(6, Status.UNCONFIRMED), (20, Status.REGRESSION)])
def test_change_that_two_of_three_show_is_regression_only_for_the_detector(runs: int, status: Status) -> None:
    """With fewer than eight earlier runs the limit alone decides, and all confirm runs must exceed it."""
    question = BaselineComparison(
        "batch_cost", SLOW, PAST[:runs], MetricRule(), POLICY, Confirm(SLOW, more=(0.31, 0.2))
    )
    found, reason = question.judge()
    assert (found, Measured(question.values).needs_confirm) == (status, False)
    assert "and 3 confirm runs measured 0.3 s, 0.31 s, 0.2 s" in reason
    assert reason.endswith(": shown by 2 of 3") == (status is Status.UNCONFIRMED)


def test_confirm_runs_decide_without_a_further_one_that_is_lost() -> None:
    status, reason, _ = judged(SLOW, missing="the confirm run c2 is cancelled")
    assert status is Status.REGRESSION
    assert reason.endswith("the confirm run measured 0.3 s (only 1 of 3: the confirm run c2 is cancelled)")


@pytest.mark.parametrize("runs", [1, 2])
def test_lost_confirm_run_is_not_named_if_enough_measured(runs: int) -> None:
    policy = Policy(name="fewer", confirm_runs=runs)
    confirm = Confirm(SLOW, "no further confirm run was made", more=(SLOW,) * (runs - 1))
    status, reason = BaselineComparison("batch_cost", SLOW, PAST, MetricRule(), policy, confirm).judge()
    assert status is Status.REGRESSION
    assert "only" not in reason


def test_metric_that_does_not_gate_needs_no_further_confirm_run() -> None:
    status, _, measured = judged(SLOW, rule=MetricRule(gating=False))
    assert (status, measured.needs_confirm) == (Status.REGRESSION, False)


def test_deterministic_metric_needs_no_further_confirm_run() -> None:
    question = BaselineComparison("batch_cost", SLOW, [0.2] * 20, MetricRule(), POLICY, Confirm(SLOW))
    assert question.judge()[0] is Status.REGRESSION


@pytest.mark.parametrize(
    ("confirms", "status", "asked"),
    [
        ((), Status.UNCONFIRMED, 1),
        ((0.2, SLOW, SLOW), Status.PASS, 1),
        ((SLOW, 0.2, 0.2), Status.PASS, 3),
        ((SLOW, SLOW, 0.2), Status.REGRESSION, 3),
        ((SLOW, SLOW, SLOW), Status.REGRESSION, 3),
        ((SLOW,), Status.REGRESSION, 2),
    ],
)
def test_series_uses_confirm_samples_until_one_refutes(
    confirms: tuple[float, ...], status: Status, asked: int
) -> None:
    last = points(*confirms)[-1]
    assert (last.status, last.asked) == (status, asked)
    used = confirms[:asked]
    assert (last.confirm, last.more) == (used[0] if used else None, used[1:])


@pytest.mark.parametrize(("values", "stored"), [((1.5,), 1.5), ((1.5, 2.0), [1.5, 2.0])])
def test_value_of_an_only_confirm_run_is_stored_as_a_number(values: tuple[float, ...], stored: object) -> None:
    document = NumbersDocument(confirms={KEY: values})
    written = document.model_dump(mode="json")
    assert list(written["confirms"].values()) == [stored]
    assert NumbersDocument.model_validate(written) == document
