"""Axes and paths of charts."""

import math

import pytest

from tipcflow.report.curves import curve
from tipcflow_pages.charts.axes import Axis, path
from tipcflow_pages.charts.losses import loss_chart


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75]),
        (0.19, 0.27, [0.2, 0.22, 0.24, 0.26]),
        (-5, 5, [-5, -2.5, 0, 2.5]),
        (7, 7.1, None),
    ],
)
def test_ticks_are_round_and_on_the_axis(low: float, high: float, ticks: list[float] | None) -> None:
    axis = Axis(low, high)
    found = axis.ticks()
    assert 2 <= len(found) <= 4
    assert all(low <= tick <= high for tick in found)
    if ticks is not None:
        assert found == pytest.approx(ticks)


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 0.0], [-1e-12, 1e12], [5e-324]])
def test_an_axis_around_any_values(values: list[float]) -> None:
    axis = Axis.around(values)
    assert axis.low < axis.high
    assert all(0 <= axis.share(value) <= 1 for value in values)
    assert axis.ticks()


def test_a_missing_value_interrupts_the_line() -> None:
    drawn = path([(0, 0.0), (1, 1.0), (2, None), (3, 1.0)], Axis(0, 4), Axis(0, 1))
    assert drawn == "M0 1000L250 0M750 0"


def test_non_finite_losses_are_crosses() -> None:
    curves = [(0, curve("A", [2.0, math.nan, 1.0])), (1, curve("B", [math.inf] * 3))]
    svg = loss_chart(curves, label='losses of <train> & "eval"')
    assert svg.count("×") == 4
    assert 'class="run-0"' in svg
    assert 'class="run-1"' not in svg, "nothing finite to draw"
    assert 'aria-label="losses of &lt;train&gt; &amp; &#34;eval&#34;"' in svg


def test_a_long_training_is_a_short_chart() -> None:
    values = [1 / (1 + at) for at in range(100_000)]
    assert len(loss_chart([(0, curve("A", values, most=800))], label="losses")) < 20_000
