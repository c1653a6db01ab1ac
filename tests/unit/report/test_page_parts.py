"""Parts of pages: thinned curves, check results, how to reproduce a run."""

import math
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import CheckResult, Run, Status
from tipcflow.domain.run_documents import JudgementDocument
from tipcflow.report.again import rerun_command
from tipcflow.report.curves import counted_iterations, curve
from tipcflow.report.meaning import NO_STATUS, RUN_MEANS, meaning, reasons
from tipcflow.report.result_groups import group_results
from tipcflow.store.schema import RUN_WORDS


def a_run(build: ModuleType, **changes: object) -> Run:
    known = build.run().model_dump() | {"created_at": 1000.0, "ended_at": 1100.0}
    return Run.model_validate(known | changes)


VALUES = st.lists(st.floats(width=32), max_size=400)


@given(VALUES, st.integers(4, 60))
def test_a_curve_keeps_its_extremes_and_its_gaps(values: list[float], most: int) -> None:
    drawn = curve("rank 0", values, most=most)
    finite = [value for value in values if math.isfinite(value)]
    kept = [value for value in drawn.y if value is not None]
    assert drawn.total == len(values)
    assert list(drawn.x) == sorted(drawn.x)
    assert len(kept) <= max(most, 4)
    assert [len(drawn.broken), len(drawn.x) - len(kept)] == [min(most, len(values) - len(finite))] * 2
    if finite:
        assert (min(kept), max(kept)) == (min(finite), max(finite))
        assert (kept[0], kept[-1]) == (finite[0], finite[-1])


def test_a_short_curve_is_left_alone() -> None:
    drawn = curve("rank 0", [2.0, math.nan, 1.0, math.inf])
    assert (drawn.x, drawn.y, drawn.broken) == ((0, 1, 2, 3), (2.0, None, 1.0, None), (1, 3))
    assert curve("rank 0", []).x == ()


@pytest.mark.parametrize(
    ("logged", "counted"),
    [
        ([(1, 0), (1, 10), (2, 0), (2, 10)], (0, 10, 20, 30)),
        ([(1, 10), (1, 20), (2, 10), (2, 20)], (10, 20, 30, 40)),
        ([(1, 1), (1, 11), (2, 1)], (1, 11, 21)),
        ([(1, 5), (2, 5), (3, 5)], (5, 10, 15)),
        ([(0, 100), (0, 200), (1, 300)], (100, 200, 300)),
        ([(1, -1), (1, -1)], ()),
        ([(0, 0), (0, 0)], ()),
        ([], ()),
    ],
)
def test_iterations_are_counted_over_epochs(logged: list[tuple[int, int]], counted: tuple[float, ...]) -> None:
    assert counted_iterations(logged) == counted


def test_results_are_sorted_worst_first_and_grouped() -> None:
    def output(check: str, status: Status, **fields: object) -> CheckResult:
        return CheckResult.model_validate({"check": check, "status": status, "reason": "r", **fields})

    results = [
        output("a", Status.PASS),
        *(output("b", Status.INSUFFICIENT_DATA, leg=str(number)) for number in range(3)),
        output("c", Status.FAILED, leg="1"),
        output("c", Status.FAILED, leg="2"),
        output("d", Status.FAILED, gating=False),
    ]
    found = group_results(results)
    assert [(one.check, one.status.value, len(one.results)) for one in found] == [
        ("c", "failed", 1), ("c", "failed", 1), ("b", "insufficient_data", 3), ("a", "pass", 1),
        ("d", "failed", 1),
    ]  # fmt: skip
    assert sorted(result.leg for one in found for result in one.results) == sorted(
        result.leg for result in results
    )


def test_the_command_to_reproduce_a_run_is_shown(build: ModuleType) -> None:
    run = a_run(build, suite="my suite", suite_commit="c0ffee", seed=7, compat="bash", mode="lite", cluster="c")
    plan = build.plan(params_file="a b.txt", repeats=3, diagnose=True)
    assert rerun_command(run, plan) == (
        "tipcflow run 'a b.txt' --suite 'my suite' --mode lite --cluster c --suite-ref c0ffee --seed 7 "
        "--repeats 3 --diagnose --compat bash"
    )
    plain = a_run(build, suite="s", suite_commit="", seed=None, compat="spec", mode="lite", cluster="c")
    assert rerun_command(plain, build.plan(params_file="f")) == "tipcflow run f --suite s --mode lite --cluster c"
    changed = a_run(build, suite="s", suite_commit="c0ffee+local", seed=None, compat="spec", mode="m", cluster="c")
    assert "--suite-ref" not in rerun_command(changed, build.plan())
    assert rerun_command(run, None) == ""


def test_every_word_of_a_run_has_a_meaning() -> None:
    assert set(RUN_MEANS) == set(RUN_WORDS)
    assert all(meaning(word) for word in RUN_WORDS)
    assert meaning(None) == NO_STATUS


def test_reasons_of_a_run_are_split_into_parts(build: ModuleType) -> None:
    run = a_run(build, reason="a: b; c; d", status=Status.FAILED)
    judged = JudgementDocument(status=Status.FAILED, reason="a: b; c; d", parts=("a: b; c", "d"))
    assert reasons(run, judged) == ["a: b; c", "d"]
    assert reasons(run, judged.model_copy(update={"parts": ()})) == ["a: b; c; d"]
    assert reasons(run.model_copy(update={"status": None, "reason": ""}), judged) == [], (
        "not yet the run's verdict"
    )
    assert reasons(run, None) == ["a: b; c; d"], "no sentence is taken apart"
    assert reasons(a_run(build, reason=""), None) == []
