"""The interval of a ratio: against the Bayes factor by numerical integration, and its coverage at every look."""

import math
import random

import numpy as np
import pytest

from tipcflow.ab import Outcome, Ratio, least_pairs, outcome_of, ratio_of
from tipcflow.domain.numbers.metrics import Better


def bayes_factor(logs: list[float], mean: float) -> float:
    """The integral over effect and noise against the integral over the noise alone; the priors of `ratio_of`."""
    values = np.array(logs) - mean
    effects = np.linspace(-14, 14, 1401)
    prior = np.exp(-(effects**2) * 0.25 / 2) * math.sqrt(0.25 / (2 * math.pi))
    with_effect = without = 0.0
    for sd in np.exp(np.linspace(-6, 6, 600)):
        logs_of = -(((values[:, None] / sd) - effects[None, :]) ** 2).sum(axis=0) / 2
        with_effect += float((np.exp(logs_of) * prior).sum() * (effects[1] - effects[0])) * sd ** -len(logs)
        without += math.exp(-float(((values / sd) ** 2).sum()) / 2) * sd ** -len(logs)
    return with_effect / without


def test_the_bounds_are_where_the_bayes_factor_is_one_over_the_error() -> None:
    logs = [0.11, 0.02, 0.07, 0.05, -0.01, 0.08]
    ratio = ratio_of([(1.0, math.exp(log)) for log in logs], 0.05)
    assert ratio.value == pytest.approx(math.exp(sum(logs) / 6))
    for bound in (ratio.low, ratio.high):
        assert bayes_factor(logs, math.log(bound)) == pytest.approx(20, rel=0.01)
    assert bayes_factor(logs, math.log(ratio.value)) < 1


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.03])
def test_interval_excludes_the_true_ratio_no_more_often_than_stated(shift: float) -> None:
    source, error, trials = random.Random(7), 0.1, 600
    excluded = 0
    for _ in range(trials):
        pairs: list[tuple[float, float]] = []
        for _ in range(30):
            pairs.append((1.0, math.exp(source.gauss(shift, 0.02))))
            ratio = ratio_of(pairs, error)
            if not ratio.low <= math.exp(shift) <= ratio.high:
                excluded += 1
                break
    # Three standard deviations of a share of 0.1 in 600 trials.
    assert excluded / trials <= error + 0.037


def test_too_few_pairs_have_no_bounds() -> None:
    assert least_pairs(0.02) == 4
    assert least_pairs(0.001) > 4
    for count in range(1, 4):
        assert ratio_of([(1.0, 2.0)] * count, 0.02) == Ratio(pytest.approx(2.0), 0.0, math.inf, count)
    assert ratio_of([(1.0, 2.0)] * 4, 0.02).high == pytest.approx(2.0)


def test_exact_measurements_decide_with_the_fewest_pairs() -> None:
    assert outcome_of(ratio_of([(3.0, 3.0)] * 4, 0.02), "lower", 0.02) is Outcome.SAME
    assert outcome_of(ratio_of([(3.0, 3.3)] * 4, 0.02), "lower", 0.02) is Outcome.WORSE


@pytest.mark.parametrize(
    ("low", "high", "better", "outcome"),
    [
        (0.99, 1.01, "lower", Outcome.SAME),
        (1.005, 1.015, "lower", Outcome.SAME),
        (1.005, 1.03, "lower", Outcome.WORSE),
        (1.005, 1.03, "higher", Outcome.BETTER),
        (0.9, 0.95, "lower", Outcome.BETTER),
        (0.9, 0.95, "higher", Outcome.WORSE),
        (0.97, 1.01, "lower", Outcome.UNDECIDED),
        (0.0, math.inf, "lower", Outcome.UNDECIDED),
    ],
)
def test_an_outcome_follows_from_the_whole_interval(
    low: float, high: float, better: Better, outcome: Outcome
) -> None:
    assert outcome_of(Ratio((low + high) / 2, low, high, 9), better, 0.02) is outcome


@pytest.mark.parametrize("pairs", [[], [(1.0, 0.0)], [(-1.0, 1.0)], [(math.nan, 1.0)]])
def test_a_ratio_needs_positive_values(pairs: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="positive"):
        ratio_of(pairs, 0.02)
    with pytest.raises(ValueError, match="between 0 and 1"):
        ratio_of([(1.0, 1.0)], 1.0)
