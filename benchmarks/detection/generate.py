"""Simulated series: known noise, and either no change or one step for the worse."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tipcflow.check.detect.series import Point, Series

POINTS = 104
REPEATS = 5
GROUP = 10
NODES = 4
# Steps leave enough history to learn from before them, and twelve runs to be detected in after them.
FIRST_STEP, LAST_STEP = 26, 91

Array = np.ndarray


@dataclass(frozen=True)
class Setting:
    """One kind of noise. `between` and `within` are relative (0.01 is 1 %).

    Attributes:
        noise: (generator, points) -> relative deviations of the runs and of their confirm runs.
        grouped: whether `GROUP` series are metrics of the same runs, and slow weeks hit all of them.
        drift: relative change over a year of 52 points.
    """

    name: str
    between: float
    within: float
    noise: Callable[[np.random.Generator, int, float], tuple[Array, Array]]
    grouped: bool = False
    drift: float = 0.0


def normal(source: np.random.Generator, points: int, scale: float) -> tuple[Array, Array]:
    """Independent normal noise."""
    return source.normal(0, scale, points), source.normal(0, scale, points)


def spikes(source: np.random.Generator, points: int, scale: float) -> tuple[Array, Array]:
    """Normal noise; 5 % of runs, including confirm runs, are 5 to 20 % slower for other reasons."""
    runs, confirms = normal(source, points, scale)
    for noise in (runs, confirms):
        noise += np.where(source.random(points) < 0.05, source.uniform(0.05, 0.20, points), 0.0)
    return runs, confirms


def autocorrelated(source: np.random.Generator, points: int, scale: float) -> tuple[Array, Array]:
    """AR(1) with coefficient 0.4; a confirm run on another node has its own state."""
    coefficient = 0.4
    shocks = source.normal(0, scale * np.sqrt(1 - coefficient**2), points)
    runs = np.empty(points)
    runs[0] = source.normal(0, scale)
    for at in range(1, points):
        runs[at] = coefficient * runs[at - 1] + shocks[at]
    return runs, source.normal(0, scale, points)


def heavy(source: np.random.Generator, points: int, scale: float) -> tuple[Array, Array]:
    """Student's t with 3 degrees of freedom, scaled by `scale`."""
    return source.standard_t(3, points) * scale, source.standard_t(3, points) * scale


SETTINGS = (
    Setting("0.5/0.3", 0.005, 0.003, normal),
    Setting("1/0.5", 0.01, 0.005, normal),
    Setting("3/1", 0.03, 0.01, normal),
    Setting("1 + 5 % spikes", 0.01, 0.005, spikes),
    Setting("AR 0.4", 0.01, 0.005, autocorrelated),
    Setting("heavy tails", 0.01, 0.005, heavy),
    Setting("slow nodes", 0.01, 0.005, normal, grouped=True),
    Setting("drift 1 %/year", 0.01, 0.005, normal, drift=0.01),
)


@dataclass(frozen=True)
class Case:
    """A series and the index of its change (None: no change)."""

    series: Series
    step_at: int | None


def cases(setting: Setting, *, step: float, count: int, seed: int, points: int = POINTS) -> Iterator[Case]:
    """`count` series of a setting; every second one is "lower is better"; the step is for the worse.

    Args:
        step: relative size of the step; 0 for none.
    """
    source = np.random.default_rng(
        [seed, round(step * 1000), SETTINGS.index(setting) if setting in SETTINGS else 99]
    )
    slow, together = np.zeros(points), np.zeros(points, int)
    for number in range(count):
        if number % GROUP == 0:
            together = source.integers(0, NODES, points)
            # A slow node: in 5 % of weeks, all its runs are 3 to 15 % slower by about the same factor.
            slow = np.where(source.random(points) < 0.05, source.uniform(0.03, 0.15, points), 0.0)
        nodes = together if setting.grouped else source.integers(0, NODES, points)
        yield _case(setting, source, number, step, nodes, slow if setting.grouped else np.zeros(points))


def _case(
    setting: Setting, source: np.random.Generator, number: int, step: float, nodes: Array, slow: Array
) -> Case:
    points = len(nodes)
    higher = number % 2 == 0
    at = int(source.integers(FIRST_STEP, LAST_STEP)) if step else None
    runs, confirms = setting.noise(source, points, setting.between)
    # Relative change, positive is worse; drift has either sign.
    runs = runs + slow * source.uniform(0.8, 1.2)
    level = np.arange(points) / 52 * setting.drift * source.choice((-1, 1))
    if at is not None:
        level = level + np.where(np.arange(points) >= at, step, 0.0)
    unit = 10.0 ** source.uniform(-3, 4)
    sign = -1.0 if higher else 1.0
    means = np.stack([runs, confirms]) + level
    samples = unit * (1 + sign * (means[..., None] + source.normal(0, setting.within, (2, points, REPEATS))))
    values = np.median(samples, axis=2)
    group = f"g{number // GROUP}" if setting.grouped else f"s{number}"
    made = tuple(
        Point(f"{group}-w{week}", f"n{nodes[week]}", float(values[0, week]), float(values[1, week]))
        for week in range(points)
    )
    return Case(Series(f"{setting.name}-{number}", "", higher, made), at)
