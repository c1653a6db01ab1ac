"""The noise of earlier runs: changes of the level and outliers are not noise."""

import random
from statistics import fmean

import pytest

from tipcflow.bisect import Noise


@pytest.mark.parametrize(("good", "level"), [([1.0, 1.1], 1.05), ([2.0, 2.1], None)])
def test_level_of_earlier_runs_is_used_if_the_good_version_agrees(good: list[float], level: float | None) -> None:
    noise = Noise.of([1.0, 1.1] * 10, good)
    assert (noise.degrees, noise.sd) == (10, pytest.approx(0.0513, abs=0.0001))
    assert (noise.level, noise.good_runs) == ((None, 0) if level is None else (pytest.approx(level), 10))
    assert Noise.of([1.0, 1.1] * 10, []).level is None


def test_few_earlier_runs_determine_nothing() -> None:
    assert Noise.of([1.0] * 4, [1.0]) == Noise()


def test_equal_runs_have_no_noise() -> None:
    assert Noise.of([0.1] * 10, [0.1, 0.1]) == Noise(0.0, 9, 0.1, 10)


@pytest.mark.parametrize("runs", [5, 10, 20])
@pytest.mark.parametrize("step", [0.0, 8.0])
def test_variance_is_that_of_a_run_whether_or_not_the_level_changed(runs: int, step: float) -> None:
    source = random.Random(1)
    variances = []
    for _ in range(400):
        change = source.randint(2, runs - 2)
        earlier = [source.gauss(step if place >= change else 0.0, 1.0) for place in range(runs)]
        variances.append(Noise.of(earlier, []).sd ** 2)
    assert fmean(variances) == pytest.approx(1.0, abs=0.25 if runs == 5 else 0.12)


def test_level_is_that_since_the_last_change() -> None:
    noise = Noise.of([1.0, 1.01, 0.99, 1.0, 1.02, 2.0, 2.01, 1.99], [2.0, 2.01])
    assert (noise.level, noise.good_runs) == (pytest.approx(2.0), 3)
    assert noise.sd == pytest.approx(0.011, abs=0.001)
    assert noise.degrees == 6


def test_outlier_is_not_noise() -> None:
    quiet = [1.0, 1.01, 0.99, 1.0, 1.02, 1.01, 0.98]
    disturbed = Noise.of([*quiet[:3], 3.0, *quiet[3:]], [1.0])
    assert disturbed == Noise.of(quiet, [1.0])
