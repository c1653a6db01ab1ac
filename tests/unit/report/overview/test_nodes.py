"""Lanes, busy time and expected starts."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import Status
from tipcflow.report.overview.nodes import Bar, busy_share, expected_starts, lanes_of

NOW = 1000.0
A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def a_bar(begin: float, end: float | None, run: str = "r") -> Bar:
    status = Status.PASS if end is not None else None
    return Bar(run=run, chain="c", mode="m", status=status, started_at=begin, ended_at=end)


def test_free_lane_is_reused() -> None:
    bars = [a_bar(0, 10), a_bar(5, 20), a_bar(10, None), a_bar(20, 30)]
    lanes = lanes_of(bars, NOW)
    assert [[bar.started_at for bar in lane] for lane in lanes] == [[0, 10], [5, 20]]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40))
def test_bars_of_a_lane_do_not_overlap_and_none_is_lost(times: list[tuple[int, int]]) -> None:
    bars = [a_bar(begin, begin + length) for begin, length in sorted(times)]
    lanes = lanes_of(bars, NOW)
    assert sum(map(len, lanes)) == len(bars)
    for lane in lanes:
        for first, second in itertools.pairwise(lane):
            assert first.ended_at is not None
            assert first.ended_at <= second.started_at
    assert 0.0 <= busy_share(bars, 10, 40) <= 1.0


@pytest.mark.parametrize(
    ("bars", "share"),
    [
        ([], 0.0),
        ([(0, 20)], 1.0),
        ([(0, 12), (11, 15)], 0.5),
        ([(10, 18), (11, 13)], 0.8),
        ([(15, None)], 0.5),
        ([(0, 5), (25, 30)], 0.0),
    ],
)
def test_overlapping_runs_count_once(bars: list[tuple[float, float | None]], share: float) -> None:
    assert busy_share([a_bar(begin, end) for begin, end in bars], 10.0, 20.0) == pytest.approx(share)


def test_a_waiting_run_starts_when_the_last_of_its_slots_is_free() -> None:
    starts = expected_starts([("x", [A0, B0])], {A0: NOW + 60, B0: NOW + 30}, {}, NOW)
    assert starts == {"x": NOW + 60}
    assert expected_starts([("x", [A1])], {A0: NOW + 60}, {}, NOW) == {"x": NOW}
    assert expected_starts([("x", [A0])], {A0: NOW - 60}, {}, NOW) == {"x": NOW}, "an overdue run ends now"


def test_runs_ahead_are_counted_and_unknown_durations_are_reported() -> None:
    queue = [("x", [A0]), ("y", [A0, A1]), ("z", [B0]), ("w", [A1])]
    starts = expected_starts(queue, {A0: NOW + 10, B0: None}, {"x": 100.0}, NOW)
    assert starts == {"x": NOW + 10, "y": NOW + 110, "z": None, "w": None}
