"""Throughput of one training log: the first iterations are dropped and the next ones are counted.

DLPerf counts 100 after the first 50.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from tipcflow.domain import ConfigError, Phase
from tipcflow.parse.training.formats import AUTO, line_formats
from tipcflow.parse.training.scan import Scan

PRINTED, TIME = "printed", "time"
_STAMP = re.compile(
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,6}))?"
)
# Throughput metrics; the first that a log has is used.
SPEEDS = ("ips", "throughput", "qps", "speed")


class Window(NamedTuple):
    """The counted iterations: `take` after the first `skip`."""

    skip: int = 50
    take: int = 100


class Throughput(NamedTuple):
    """The throughput of a training log.

    Attributes:
        speed: samples per second of all devices.
        how: origin of the value.
        iterations: number of iterations covered.
        not_finite: number of lines with nan or inf instead, which are excluded.
    """

    speed: float
    how: str
    iterations: int
    not_finite: int = 0


class Step(NamedTuple):
    """One training line: its iteration counted over the whole log, its time stamp and its values."""

    iteration: int
    at: float | None
    values: dict[str, float]


class Counter:
    """Converts iterations that restart in every epoch to iterations counted over the whole training."""

    def __init__(self) -> None:
        self._base, self._last, self._gap = 0, -1, 1

    def at(self, iteration: int) -> int:
        """Return the global iteration of the next line; if `iteration` is -1 (unknown), one after the previous
        line."""
        if iteration < 0:
            iteration = self._last + 1
        elif iteration <= self._last:
            self._base += self._last + self._gap
        elif self._last >= 0:
            self._gap = iteration - self._last
        self._last = iteration
        return self._base + iteration


def steps_in(lines: Iterable[tuple[int, str]], log_format: str = AUTO) -> Iterator[Step]:
    """Yield the training lines of a log of one rank."""
    scan = Scan(line_formats(log_format))
    counter = Counter()
    for offset, raw in lines:
        line, spotted = scan.line(raw)
        samples = [] if spotted is None else list(scan.samples_in(line, spotted, offset=offset))
        values = {sample.metric: sample.value for sample in samples if sample.phase is Phase.TRAIN}
        if not values or not {*SPEEDS, "batch_cost", "loss"} & set(values):
            continue
        yield Step(counter.at(samples[0].iteration), _stamp(line), values)


def counting(steps: Iterable[Step], window: Window) -> Iterator[Step]:
    """Yield the steps up to the end of the window; later lines are not read."""
    first: int | None = None
    for step in steps:
        first = step.iteration if first is None else first
        if step.iteration - first >= window.skip + window.take:
            return
        yield step


def speed_of(
    steps: Sequence[Step], *, rule: str, batch: int, devices: int, window: Window, source: str
) -> Throughput:
    """Return the throughput of one training log; nan and inf are excluded.

    Args:
        rule: `printed` averages the printed throughput, which is that of all devices; `time` divides batch ×
            devices by the time per iteration: the mean batch_cost, otherwise the difference of time stamps.

    Raises:
        ConfigError: the log does not contain the value, or is shorter than the dropped part.
    """
    if not steps:
        raise ConfigError("has no training line", file=source, expected="a training log, or printed results")
    first = steps[0].iteration
    chosen = [step for step in steps if window.skip <= step.iteration - first < window.skip + window.take]
    if not chosen:
        raise ConfigError(
            f"has {steps[-1].iteration - first + 1} iterations, and the first {window.skip} do not count",
            file=source,
            expected="a longer log, or a smaller --skip",
        )
    iterations = covered(chosen, first + window.skip, window.take)
    name = next((name for name in SPEEDS if any(name in step.values for step in chosen)), "")
    if rule == PRINTED:
        printed = _finite(chosen, name)
        if not printed:
            raise ConfigError(
                f"prints no {name} that is a number" if name else "prints no speed",
                file=source,
                expected=f"one of {', '.join(SPEEDS)}, or --rule time",
            )
        return Throughput(
            sum(printed) / len(printed), PRINTED, iterations, _count_printed(chosen, name) - len(printed)
        )
    costs = _finite(chosen, "batch_cost")
    if costs and sum(costs) > 0:
        speed = batch * devices * len(costs) / sum(costs)
        return Throughput(speed, "batch_cost", iterations, _count_printed(chosen, "batch_cost") - len(costs))
    stamped = [step for step in chosen if step.at is not None]
    seconds = (stamped[-1].at or 0.0) - (stamped[0].at or 0.0) if stamped else 0.0
    if seconds <= 0:
        raise ConfigError(
            "contains no timing", file=source, expected="batch_cost or time stamps, or --rule printed"
        )
    speed = batch * devices * (stamped[-1].iteration - stamped[0].iteration) / seconds
    return Throughput(speed, "timestamps", iterations)


def _finite(steps: Sequence[Step], name: str) -> list[float]:
    """Return the finite values of that name."""
    return [step.values[name] for step in steps if math.isfinite(step.values.get(name, math.nan))]


def _count_printed(steps: Sequence[Step], name: str) -> int:
    return sum(name in step.values for step in steps)


def covered(chosen: Sequence[Step], begin: int, take: int) -> int:
    """Return how many of the counted iterations the log covers; a line covers those since the previous line."""
    between = len(chosen) - 1
    every = (chosen[-1].iteration - chosen[0].iteration) // between if between else 1
    return min(take, chosen[-1].iteration - begin + max(1, every))


def _stamp(line: str) -> float | None:
    """Return the time stamp of a line, seconds since an arbitrary origin; None if it has none."""
    match = _STAMP.search(line[:60])
    if match is None:
        return None
    date = match["date"].replace("/", "-")
    try:
        at = datetime.fromisoformat(f"{date if len(date) == 10 else f'2000-{date}'}T{match['time']}+00:00")
    except ValueError:
        return None
    return at.timestamp() + float(f"0.{match['part'] or 0}")
