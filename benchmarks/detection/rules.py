"""Rules of other projects according to their documentation, evaluated run by run on medians.

Every rule looks both ways, and begins a new history at the run that it raised. What a description leaves open is
stated in the docstring.
"""

import math
from collections.abc import Callable, Sequence
from statistics import median

from tipcflow.check.detect import Series

# (index of the run that raises it, relative change)
Raised = tuple[int, float]
Rule = Callable[[Series], list[Raised]]
HISTORY = 8


def _judge(series: Series, look: Callable[[Sequence[float], float | None], float | None]) -> list[Raised]:
    """Call `look` with the history up to each run; a reported change starts a new history."""
    raised: list[Raised] = []
    begin = 0
    values = [point.value for point in series.points]
    for index, point in enumerate(series.points):
        change = look(values[begin : index + 1], point.confirm)
        if change is not None:
            raised.append((index, change))
            begin = index
    return raised


def _mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, sum([(one - mean) ** 2 for one in values]) / (len(values) - 1)


def torchbench(series: Series) -> list[Raised]:
    """More than 7 % from the previous run."""

    def look(values: Sequence[float], _: float | None) -> float | None:
        change = values[-1] / values[-2] - 1 if len(values) > 1 else 0.0
        return change if abs(change) > 0.07 else None

    return _judge(series, look)


def paddletest(series: Series) -> list[Raised]:
    """More than 5 % from a fixed value: the first run's, until the rule raises an alert."""

    def look(values: Sequence[float], _: float | None) -> float | None:
        change = values[-1] / values[0] - 1
        return change if abs(change) > 0.05 else None

    return _judge(series, look)


def hud(series: Series) -> list[Raised]:
    """Two consecutive runs more than 5 % to the same side of the run before them."""

    def look(values: Sequence[float], _: float | None) -> float | None:
        if len(values) < 3:
            return None
        first, second = values[-2] / values[-3] - 1, values[-1] / values[-3] - 1
        return second if min(abs(first), abs(second)) > 0.05 and first * second > 0 else None

    return _judge(series, look)


def conbench(series: Series) -> list[Raised]:
    """More than 5 standard deviations from the mean of at most 100 previous runs."""

    def look(values: Sequence[float], _: float | None) -> float | None:
        past = values[:-1][-100:]
        if len(past) < HISTORY:
            return None
        mean, variance = _mean_and_variance(past)
        off = values[-1] - mean
        return off / mean if abs(off) > 5 * math.sqrt(variance) else None

    return _judge(series, look)


def perfherder(series: Series) -> list[Raised]:
    """t above 7 between the last 12 runs and the 12 to 24 before them, and a change of at least 2 %."""

    def look(values: Sequence[float], _: float | None) -> float | None:
        after, before = values[-12:], values[:-12][-24:]
        if len(before) < 12:
            return None
        (new, noise_after), (old, noise_before) = _mean_and_variance(after), _mean_and_variance(before)
        error = math.sqrt(noise_after / len(after) + noise_before / len(before))
        return new / old - 1 if abs(new / old - 1) >= 0.02 and abs(new - old) > 7 * error else None

    return _judge(series, look)


def median_mad(series: Series) -> list[Raised]:
    """Beyond 3 robust standard deviations and 2 %, in the run and in its confirmation."""

    def look(values: Sequence[float], confirm: float | None) -> float | None:
        past = values[:-1][-26:]
        if len(past) < HISTORY:
            return None
        level = median(past)
        limit = max(0.02 * level, 3 * 1.4826 * median([abs(one - level) for one in past]))
        off = values[-1] - level
        agreed = confirm is not None and (confirm - level) * math.copysign(1, off) > limit
        return off / level if abs(off) > limit and agreed else None

    return _judge(series, look)


RULES: dict[str, Rule] = {
    "TorchBench 7 %": torchbench,
    "PaddleTest 5 %": paddletest,
    "HUD 5 % x 2": hud,
    "Conbench z 5": conbench,
    "Perfherder t 7": perfherder,
    "median/MAD + confirmation": median_mad,
}
