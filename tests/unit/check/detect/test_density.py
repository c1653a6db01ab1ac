"""The distribution of the runs of a level."""

import math
import random

import pytest

from tipcflow.check.detect.density import Density

STEP = 0.02
GRID = [STEP * at for at in range(-2000, 2001)]


def normal(count: int) -> list[float]:
    source = random.Random(1)
    return [source.gauss(0, 1) for _ in range(count)]


@pytest.mark.parametrize("count", [4, 30, 60])
def test_density_has_the_mass_of_a_distribution_and_of_far_outliers(count: int) -> None:
    density = Density(normal(count))
    mass = sum(math.exp(density.log(at)) for at in GRID) * STEP
    # Values at any distance have a density of 0.0005, over the 80 standard deviations of the grid.
    assert mass == pytest.approx(1 + 0.0005 * 80, abs=0.01)


def test_second_group_of_runs_has_density() -> None:
    single, double = Density(normal(40)), Density([*normal(30), *[6 + deviation for deviation in normal(10)]])
    assert double.log(6) - single.log(6) > 3
    assert double.log(0) < single.log(0)


@pytest.mark.parametrize("at", [1e3, -1e6])
def test_densities_of_far_values_are_equal(at: float) -> None:
    assert Density(normal(30)).log(at) == pytest.approx(math.log(0.0005), abs=1e-3)
