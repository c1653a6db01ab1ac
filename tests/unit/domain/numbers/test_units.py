"""Durations, times and sizes, as everywhere in tipcflow."""

import math

import pytest

from tipcflow.domain.numbers.units import (
    clock,
    clock_offset,
    counted,
    duration,
    expected_wait,
    limit,
    minutes,
    offset,
    percent,
    percent_change,
    plural,
    rough,
    size,
    utc,
    utc_minute,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (math.nan, ""),
        (math.inf, ""),
        (-3.0, "0.0 s"),
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1:00"),
        (3599.6, "1:00:00"),
        (3661, "1:01:01"),
        (47 * 3600 + 59 * 60 + 59, "47:59:59"),
        (50 * 3600, "2 d 2 h"),
    ],
)
def test_durations_are_formatted(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_offsets_have_a_sign() -> None:
    assert [offset(seconds) for seconds in (0.26, -0.3, 75)] == ["+0.3 s", "-0.3 s", "+1:15"]
    assert [clock_offset(seconds) for seconds in (4.4, -75, -1200)] == [
        "4 s ahead",
        "75 s behind",
        "20 min behind",
    ]


def test_expected_waits_are_whole_minutes() -> None:
    assert [expected_wait(seconds) for seconds in (0, 40, 744, 7000)] == ["1 min", "1 min", "12 min", "117 min"]


def test_clocks_show_whole_seconds() -> None:
    assert [clock(seconds) for seconds in (0.4, 1, 59.4, 59.6, 120)] == ["0", "1 s", "59 s", "1:00", "2:00"]


def test_times_are_utc_and_invalid_times_are_omitted() -> None:
    assert utc(1_795_000_000) == "2026-11-18 11:06:40"
    assert [utc(epoch) for epoch in (None, math.nan, 1e300)] == ["", "", ""]


def test_sizes_are_formatted() -> None:
    assert [size(count) for count in (0, 1023, 1024, 5000, 3 << 20, 5 << 30, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "4.9 KiB",
        "3.0 MiB",
        "5.0 GiB",
        "3.0 TiB",
    ]


def test_time_limits_are_formatted() -> None:
    shown = {
        5: "5 s",
        2.5: "2.5 s",
        599: "599 s",
        600: "10 min",
        1200: "20 min",
        35940: "599 min",
        37800: "10.5 h",
        86400: "24 h",
        259200: "3 days",
    }
    assert {seconds: limit(seconds) for seconds in shown} == shown


def test_a_wait_has_whole_seconds() -> None:
    assert [rough(seconds) for seconds in (0.4, 45.34, 599.6, 5400)] == ["0 s", "45 s", "10 min", "90 min"]


def test_minutes_have_no_unit() -> None:
    assert [minutes(seconds) for seconds in (0, 90, 740)] == ["0.0", "1.5", "12.3"]


def test_a_time_to_the_minute_names_its_zone() -> None:
    assert [utc_minute(epoch) for epoch in (1_795_000_059, math.nan)] == ["2026-11-18 11:07 UTC", ""]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (None, ""),
        (0.0, "0 %"),
        (0.3, "+30.0 %"),
        (-0.0123, "-1.2 %"),
        (0.0000123, "+0.001 %"),
        (4.0, "+400 %"),
    ],
)
def test_percentages_are_formatted(change: float | None, text: str) -> None:
    assert percent(change) == text


def test_the_change_of_a_ratio_is_in_percent() -> None:
    assert percent_change(1.25) == 25.0
    assert percent_change(None) is None


def test_counted_nouns_agree_with_their_number() -> None:
    assert [counted(number, "warm-up pair") for number in (0, 1, 2)] == [
        "0 warm-up pairs",
        "1 warm-up pair",
        "2 warm-up pairs",
    ]
    assert [plural(number, "day") for number in (0.5, 1, 7)] == ["days", "day", "days"]
