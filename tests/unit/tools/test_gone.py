"""Alerts on real series that go away: their classes, and the oracle with confirm runs."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tipcflow.check.detect import Point, Series

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "detection"
# Two quiet values around 100, alternating: the noise is about 1.5.
QUIET = [99.0, 101.0] * 30


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a script of the benchmark, which imports its neighbors by their plain names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if FOLDER in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]


def series(values: list[float]) -> Series:
    return Series("s", "ns", False, tuple(Point(f"r{at}", "n", value) for at, value in enumerate(values)))


def classified(gone: ModuleType, values: list[float], at: int) -> str:
    """The class of an alert at a point, '' if its shift stays."""
    size = values[at] / 100 - 1
    found = gone.classified(lambda _: [(at, size)], [series(values)], seed=1)
    assert len(found) < 2
    return str(found[0]["class"]) if found else ""


def test_shift_that_stays_is_not_gone(load: Any) -> None:
    assert classified(load("gone"), QUIET + [120.0] * 20, 60) == ""


def test_level_that_returns_after_three_points_has_the_class_moved(load: Any) -> None:
    gone = load("gone")
    assert classified(gone, [*QUIET, *[120.0] * 3, *QUIET], 60) == "moved"
    # The alert may come at any of the points.
    assert classified(gone, [*QUIET, *[120.0] * 3, *QUIET], 62) == "moved"


@pytest.mark.parametrize("length", [1, 2])
def test_up_to_two_points_have_the_class_short(load: Any, length: int) -> None:
    assert classified(load("gone"), [*QUIET, *[120.0] * length, *QUIET], 60) == "short"


def test_three_points_within_the_noise_have_the_class_small(load: Any) -> None:
    assert classified(load("gone"), [*QUIET, *[104.0] * 3, *QUIET], 60) == "small"


@pytest.mark.parametrize(("every", "name"), [(6, "groups"), (40, "short")])
def test_level_of_every_sixth_point_has_the_class_groups(load: Any, every: int, name: str) -> None:
    values = [120.0 if at % every == every // 2 else value for at, value in enumerate(QUIET)]
    assert classified(load("gone"), [*values, 120.0, *QUIET], 60) == name


def test_alert_too_near_to_the_end_is_not_classified(load: Any) -> None:
    assert classified(load("gone"), [*QUIET, 120.0, *QUIET[:7]], 60) == ""
    assert classified(load("gone"), [*QUIET, 120.0, *QUIET[:8]], 60) == "short"


def test_confirm_runs_of_the_oracle_stop_at_the_first_that_refutes(load: Any) -> None:
    bound = load("bound")
    one = bound.Window(3.0, (2.0, 0.5, 2.0))
    assert bound.decided(one, 3.5, 1.0, 3) == (False, 0)
    assert bound.decided(one, 2.5, 1.0, 3) == (False, 2)
    assert bound.decided(one, 2.5, 1.0, 1) == (True, 1)
    assert bound.decided(one, 2.5, 0.5, 3) == (True, 3)


def test_second_threshold_finds_the_share(load: Any) -> None:
    bound = load("bound")
    found = [bound.Window(float(at), (float(at), 9.0)) for at in range(10)]
    second = bound.second_of(found, 0.0, 0.8, 2)
    assert second == 2.0
    assert sum(bound.decided(one, 0.0, second, 2)[0] for one in found) == 8
    # The first threshold alone misses more.
    assert bound.second_of(found, 5.0, 0.8, 2) is None


def test_window_is_seen_from_the_side_of_the_points(load: Any) -> None:
    bound = load("bound")
    made = bound.window([99.0, 101.0] * 20, [90.0] * 4, [90.0, 110.0])
    spread = 1.4826
    assert made.points == pytest.approx(10 / spread)
    assert made.confirms == pytest.approx((10 / spread, -10 / spread))
