"""What the gate says of itself."""

import random

from tipcflow.check.detect.limits import limits_of
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


def test_too_few_runs_say_nothing() -> None:
    found = limits_of(history(0.01, 5), RULE, higher_is_better=True)
    assert (found.runs, found.sigma, found.false_per_year, found.smallest) == (5, None, None, None)
    assert limits_of([0.0] * 20, RULE, higher_is_better=True).smallest is None
