"""A trend for the worse is not noise: a steady slowdown does not widen its own limit."""

import random
from pathlib import Path

import pytest

from tipcflow.check.baseline.comparison import BaselineComparison, Confirm
from tipcflow.check.baseline.trend import without_trend
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import Status

CONFIGS = Path(__file__).parents[4] / "configs" / "policies"
SHIPPED = {name: load_yaml(CONFIGS / f"{name}.yaml", Policy) for name in ("pr", "weekly")}


def test_a_steady_rise_has_no_spread() -> None:
    assert without_trend([1.0, 1.1, 1.2, 1.3, 1.4], higher_is_better=False) == pytest.approx([1.4] * 5)
    assert without_trend([1.4, 1.3, 1.2, 1.1, 1.0], higher_is_better=True) == pytest.approx([1.0] * 5)


@pytest.mark.parametrize(
    "runs", [[1.4, 1.3, 1.2, 1.1, 1.0], [1.0, 1.2, 1.1, 1.3, 1.2], [1.0] * 6, [1.0, 1.1, 1.2]]
)
def test_runs_without_a_trend_are_unchanged(runs: list[float]) -> None:
    assert without_trend(runs, higher_is_better=False) == tuple(runs)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [5, 8, 20, 52])
def test_noise_is_rarely_taken_for_a_trend(runs: int) -> None:
    dice = random.Random(runs)
    series = [tuple(dice.gauss(1, 0.02) for _ in range(runs)) for _ in range(1000)]
    changed = sum(without_trend(one, higher_is_better=False) != one for one in series)
    assert changed <= 25


@pytest.mark.parametrize(
    ("policy", "step", "by_run"),
    [("weekly", 0.06, 8), ("weekly", 0.04, 9), ("weekly", 0.02, 12), ("pr", 0.06, 20), ("pr", 0.15, 11)],
)
@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_a_steady_slowdown_is_a_regression(policy: str, step: float, by_run: int, noise: float) -> None:
    """Each run is slower by the same share, and its confirm runs agree."""
    dice, rules = random.Random(7), SHIPPED[policy]
    past: list[float] = []
    for run in range(1, 53):
        value = (1 + step) ** run * dice.gauss(1, noise)
        known = past[-rules.history :]
        confirm = Confirm(value, more=(value,) * (rules.confirm_runs - 1))
        requested = BaselineComparison("batch_cost", value, known, MetricRule(), rules, confirm)
        if requested.judge()[0] is Status.REGRESSION:
            assert run <= by_run, run
            return
        past.append(value)
    pytest.fail("never")
