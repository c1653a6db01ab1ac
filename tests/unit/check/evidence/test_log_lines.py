"""Training lines that earlier runs had and that are not recognized any more are no good news."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.evidence import ran_log
from tipcflow.domain import CheckResult, LogLines, PastRun, Status

BEFORE = LogLines(recognised=100, unknown=50)


def judged(build: ModuleType, now: LogLines, *before: LogLines, runs: int = 5) -> list[CheckResult]:
    lines = [*before, *[BEFORE] * runs][:runs]
    history = tuple(PastRun(run=f"r{n}", lines={build.TRAIN: one}) for n, one in enumerate(lines))
    return ran_log(build.facts(lines={build.TRAIN: now}), CheckContext(history=history))


@pytest.mark.parametrize(
    ("recognised", "unknown", "status", "gating"),
    [
        (100, 50, Status.PASS, True),
        (98, 60, Status.PASS, True),
        (10, 140, Status.UNCONFIRMED, True),  # nine of ten training lines have another format
        (70, 80, Status.UNCONFIRMED, True),
        (50, 25, Status.PASS, True),  # trained half as long: train.length judges that
        (10, 50, Status.INSUFFICIENT_DATA, False),  # prints more rarely, other lines as before
        (100, 5000, Status.INSUFFICIENT_DATA, False),  # the same training lines among many warnings
    ],
)
def test_recognized_lines_are_compared_with_earlier_runs(
    build: ModuleType, recognised: int, unknown: int, status: Status, gating: bool
) -> None:
    (result,) = judged(build, LogLines(recognised=recognised, unknown=unknown))
    assert (result.status, result.gating, result.step) == (status, gating, build.TRAIN)
    assert f"{recognised} of {recognised + unknown} log lines are recognized" in result.reason


def test_run_with_unrecognized_lines_is_not_green(build: ModuleType) -> None:
    facts = build.facts(lines={build.TRAIN: LogLines(recognised=10, unknown=140)})
    history = tuple(PastRun(run=f"r{n}", lines={build.TRAIN: BEFORE}) for n in range(5))
    status, reason = verdict(facts, judge(facts, CheckContext(history=history)))
    assert status is Status.UNCONFIRMED
    assert (
        "10 of 150 log lines are recognized (7 %); each of the last 5 accepted runs has at least 100 (67 %)"
        in reason
    )


def test_an_accepted_run_with_fewer_lines_is_history(build: ModuleType) -> None:
    now = LogLines(recognised=10, unknown=140)
    (result,) = judged(build, now, LogLines(recognised=12, unknown=130))
    assert result.status is Status.PASS


def test_four_runs_are_not_history(build: ModuleType) -> None:
    assert judged(build, LogLines(recognised=1, unknown=140), runs=4) == []


def test_a_failed_training_has_its_own_reason(build: ModuleType) -> None:
    history = tuple(PastRun(run=f"r{n}", lines={build.TRAIN: BEFORE}) for n in range(5))
    facts = build.facts(
        lines={build.TRAIN: LogLines(recognised=1, unknown=140)},
        step_status={**build.facts().step_status, build.TRAIN: Status.FAILED},
    )
    assert ran_log(facts, CheckContext(history=history)) == []


def test_repeats_are_compared_with_the_step(build: ModuleType) -> None:
    name = build.TRAIN.replace("v/", "v_repeat_2/")
    history = tuple(PastRun(run=f"r{n}", lines={name: BEFORE}) for n in range(5))
    facts = build.facts(lines={build.TRAIN: LogLines(recognised=10, unknown=140)})
    assert [one.status for one in ran_log(facts, CheckContext(history=history))] == [Status.UNCONFIRMED]
