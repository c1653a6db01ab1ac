"""Likelihoods of a bisection against brute force and known cases."""

import math
import random

import numpy as np
import pytest

from tipcflow.bisect import Levels, Noise, failure_outcomes, level_outcomes, log_failures, log_levels
from tipcflow.bisect.likelihood import log_known


def best(logs: list[float]) -> int:
    return max(range(len(logs)), key=lambda place: logs[place]) + 1


def integrated(good: list[float], bad: list[float]) -> float:
    """The marginal likelihood of two groups with flat means and prior 1/sd², by numerical integration."""
    lows, highs = np.linspace(-8, 10, 181), np.exp(np.linspace(-4, 4, 161))
    total = 0.0
    for sd in highs:
        parts = []
        for group in (good, bad):
            squares = ((np.array(group)[:, None] - lows[None, :]) ** 2).sum(axis=0)
            parts.append(np.exp(-squares / (2 * sd**2)).sum() * (lows[1] - lows[0]))
        # d(sd) / sd³ with the logarithmic grid: the prior 1/sd² of the variance is 1/sd³ of sd.
        total += sd ** -(len(good) + len(bad)) * parts[0] * parts[1] * sd / sd * math.log(highs[1] / highs[0])
    return math.log(total)


def test_unknown_levels_equal_the_integral_over_levels_and_noise() -> None:
    measured = {0: [0.1, -0.4], 1: [0.3], 2: [2.9], 3: [3.2, 2.4]}
    values = [(place, value) for place, several in measured.items() for value in several]
    exact = log_levels(measured, 4, Noise())
    brute = [integrated([v for p, v in values if p < k], [v for p, v in values if p >= k]) for k in range(1, 4)]
    assert [one - exact[1] for one in exact] == pytest.approx([one - brute[1] for one in brute], abs=0.02)


def test_exact_measurements_give_certainty() -> None:
    logs = log_levels({0: [1.0, 1.0], 4: [1.0], 5: [1.2], 9: [1.2, 1.2]}, 10, Noise())
    assert best(logs) == 5
    assert sorted(logs)[-1] - sorted(logs)[-2] > 10


def test_earlier_runs_determine_the_noise() -> None:
    """0.6 differs from 0 if the noise is 0.1, and may be either if it is 1."""
    measured = {0: [0.0, 0.05], 2: [0.6], 4: [1.0, 0.95]}

    def doubt(noise: Noise) -> float:
        logs = log_levels(measured, 5, noise)
        return abs(logs[0] - logs[3])

    assert doubt(Noise(0.05, 10)) > 2 * doubt(Noise(1.0, 10))


def test_earlier_runs_of_the_good_level_count_as_its_measurements() -> None:
    """0.5 is nearer to the good level of the earlier runs, and to the bad one by the ends alone."""
    measured, noise = {0: [-0.4], 2: [0.5], 4: [1.2]}, Noise(0.3, 10)
    alone, more = log_levels(measured, 5, noise), log_levels(measured, 5, Noise(0.3, 10, level=0.1, good_runs=10))
    assert alone[0] > alone[3]
    assert more[3] > more[0]


def test_outcomes_have_the_mean_of_both_levels() -> None:
    """The place is bad with probability 0.3: the expected result is 30 % of the way to the bad level."""
    measured = {0: [10.0, 12.0], 4: [20.0, 22.0]}
    outcomes = level_outcomes(measured, [0.1, 0.2, 0.3, 0.4], 2, Noise())
    assert math.fsum(probability for _, probability in outcomes) == pytest.approx(1, abs=1e-5)
    assert math.fsum(value * probability for value, probability in outcomes) == pytest.approx(14, abs=0.01)


def test_known_levels_give_the_likelihood_ratio() -> None:
    logs = log_known({1: [3.0], 2: [0.0]}, 4, Levels(good=0.0, bad=3.0, sd=1.0))
    assert logs == pytest.approx([0.0, -4.5, 0.0])


@pytest.mark.parametrize(("share", "least"), [(1.0, 5), (0.5, 0)])
def test_likelihood_of_failures_finds_the_change(share: float, least: float) -> None:
    source = random.Random(2)
    measured: dict[int, list[float]] = {place: [0.0] * 8 for place in range(4)}
    measured |= {place: [float(source.random() < share) for _ in range(12)] for place in range(4, 8)}
    logs = log_failures(measured, 8)
    assert best(logs) == 4
    assert sorted(logs)[-1] - sorted(logs)[-2] > least


def test_outlier_does_not_hide_a_failure() -> None:
    logs = log_failures({0: [0.0] * 3, 3: [0.0, 0.0, 1.0, 0.0], 4: [1.0] * 4, 7: [1.0] * 3}, 8)
    assert best(logs) == 4


def test_outcomes_of_a_failure_follow_the_measurements() -> None:
    measured = {0: [0.0] * 4, 2: [1.0], 4: [1.0] * 4}
    posterior = [0.5, 0.5, 0.0, 0.0]
    for place, least, most in ((0, 0.0, 0.1), (1, 0.4, 0.6), (3, 0.8, 1.0)):
        outcomes = dict(failure_outcomes(measured, posterior, place))
        assert sum(outcomes.values()) == pytest.approx(1)
        assert least < outcomes[1.0] < most
