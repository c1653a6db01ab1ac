"""Attempts as bars on a time axis, and the marks of the axis."""

from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import Attempt, Run, Status
from tipcflow.report.run.timeline import bars, span_s, ticks


def attempt(build: ModuleType, number: int, nodes: tuple[str, ...], start: float, end: float | None) -> Attempt:
    status = None if end is None else Status.FAILED
    return Attempt(
        run=build.RUN, step=build.TRAIN, attempt=number, nodes=nodes, started_at=start, ended_at=end, status=status
    )


def a_run(build: ModuleType, **changes: object) -> Run:
    known = build.run().model_dump() | {"created_at": 1000.0, "ended_at": 1100.0}
    return Run.model_validate(known | changes)


def test_timeline_has_a_bar_per_attempt_and_node(build: ModuleType) -> None:
    run = a_run(build)
    tried = [attempt(build, 1, ("a", "b"), 1010, 1020), attempt(build, 2, ("a",), 1030, None)]
    drawn = bars(run, tried, now=1090)
    assert [(bar.node, bar.attempt, bar.status, bar.start_s, bar.seconds) for bar in drawn] == [
        ("a", 1, Status.FAILED, 10, 10), ("b", 1, Status.FAILED, 10, 10), ("a", 2, None, 30, 60),
    ]  # fmt: skip
    assert span_s(run, drawn, now=1090) == 100
    assert span_s(a_run(build, ended_at=None), drawn, now=1150) == 150


@pytest.mark.parametrize("skew", [-5000.0, -3.0, 0.0, 3.0, 5000.0])
def test_a_nodes_clock_does_not_move_its_bar_out_of_the_attempt(build: ModuleType, skew: float) -> None:
    record = build.record(build.TRAIN, "a", started_at=1012 + skew, ended_at=1018 + skew)
    tried = attempt(build, 1, ("a",), 1010, 1020).model_copy(update={"records": (record,)})
    (bar,) = bars(a_run(build), [tried], now=0)
    assert bar.seconds == 6
    assert 10 <= bar.start_s <= bar.start_s + bar.seconds <= 20
    assert bar.record is record


@given(st.floats(0.001, 1e9), st.integers(2, 12))
def test_timeline_ticks_are_evenly_spaced(span: float, most: int) -> None:
    marks = ticks(span, most=most)
    assert marks[0] == 0
    assert 1 <= len(marks) <= most
    assert all(mark <= span for mark in marks)
    assert len({later - mark for mark, later in pairwise(marks)}) <= 1
