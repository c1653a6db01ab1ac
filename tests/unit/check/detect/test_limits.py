"""The limits that the detector reports."""

import random

import pytest

from tipcflow.check.detect import Gate
from tipcflow.check.detect.limits import RUNS, _smallest, limits_of
from tipcflow.config.policy import DetectRule

RULE = DetectRule()


def history(sigma: float, count: int = 40) -> list[float]:
    source = random.Random(4)
    return [100 * (1 + source.gauss(0, sigma)) for _ in range(count)]


def test_a_noisier_metric_hides_larger_changes() -> None:
    quiet, noisy = (limits_of(history(sigma), RULE, higher_is_better=True, years=10) for sigma in (0.005, 0.03))
    assert quiet.smallest is not None
    assert noisy.smallest is not None
    assert 0.012 < quiet.smallest < 0.03 < noisy.smallest
    assert (quiet.false_per_year, quiet.simulated_years) == (0.0, 10.0)


def test_too_few_runs_have_no_result() -> None:
    found = limits_of(history(0.01, 5), RULE, higher_is_better=True)
    assert (found.runs, found.sigma, found.false_per_year, found.smallest) == (5, None, None, None)
    assert limits_of([0.0] * 20, RULE, higher_is_better=True).smallest is None


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "least", "runs"), [(0.005, 0.015, 30), (0.01, 0.025, 30), (0.03, 0.07, 45)])
def test_the_smallest_change_is_found_as_often_as_claimed(sigma: float, least: float, runs: int) -> None:
    """Eighty series without confirm runs: nearly all show it within twelve runs, few show half of it."""
    result = limits_of(history(sigma, runs), RULE, higher_is_better=True, years=0)
    assert result.smallest == pytest.approx(least, rel=0.5)
    # Limits from a random history vary; the guarantee is for a given noise, which is passed here.
    true = _smallest(runs, sigma, 0.0, RULE)
    assert found(true, sigma, runs) >= 0.93
    assert found(true / 2, sigma, runs) < 0.7


def found(step: float, sigma: float, runs: int, series: int = 80) -> float:
    source = random.Random(11)
    hits = 0
    for _ in range(series):
        gate = Gate(True, RULE)
        values = [source.gauss(0, sigma) - (step if at >= runs else 0) for at in range(runs + RUNS)]
        hits += any(gate.judge(at, 100 * (1 + one), lambda: None) and at >= runs for at, one in enumerate(values))
    return hits / series
