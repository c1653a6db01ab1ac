"""What one training log says of its speed: the first iterations are dropped and the next ones counted.

DLPerf takes 100 after 50.
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
# Of the metrics that say how fast, the first that a log has.
SPEEDS = ("ips", "throughput", "qps", "speed")


class Window(NamedTuple):
    """Which iterations count: `take` after the first `skip`."""

    skip: int = 50
    take: int = 100


class Found(NamedTuple):
    """What a training log says.

    Attributes:
        speed: samples per second of all devices.
        how: where that comes from.
        iterations: of how many iterations it is.
        not_finite: lines that gave nan or inf instead, and do not count.
    """

    speed: float
    how: str
    iterations: int
    not_finite: int = 0


class Step(NamedTuple):
    """One training line: its iteration counted over the whole log, when it was printed, what it says."""

    iteration: int
    at: float | None
    values: dict[str, float]


class Counter:
    """Iterations that start again with every epoch -> iterations counted over the whole training."""

    def __init__(self) -> None:
        self._base, self._last, self._gap = 0, -1, 1

    def at(self, iteration: int) -> int:
        """Where the next line stands; -1 where it does not say: one behind the line before."""
        if iteration < 0:
            iteration = self._last + 1
        elif iteration <= self._last:
            self._base += self._last + self._gap
        elif self._last >= 0:
            self._gap = iteration - self._last
        self._last = iteration
        return self._base + iteration


def steps_in(lines: Iterable[tuple[int, str]], log_format: str = AUTO) -> Iterator[Step]:
    """The training lines of a log of one rank."""
    scan = Scan(line_formats(log_format))
    counter = Counter()
    for offset, raw in lines:
        line, spotted = scan.line(raw)
        samples = [] if spotted is None else list(scan.samples_in(line, spotted, offset=offset))
        values = {one.metric: one.value for one in samples if one.phase is Phase.TRAIN}
        if not values or not {*SPEEDS, "batch_cost", "loss"} & set(values):
            continue
        yield Step(counter.at(samples[0].iteration), _stamp(line), values)


def counting(steps: Iterable[Step], window: Window) -> Iterator[Step]:
    """The steps up to the end of the window; what comes after it is not even read."""
    first: int | None = None
    for step in steps:
        first = step.iteration if first is None else first
        if step.iteration - first >= window.skip + window.take:
            return
        yield step


def speed_of(steps: Sequence[Step], *, rule: str, batch: int, devices: int, window: Window, source: str) -> Found:
    """What one training log says; nan and inf in it do not count.

    Args:
        rule: `printed` takes the speed that the log prints as that of all devices, and averages it; `time` divides
            batch × devices by the time of an iteration: the mean batch_cost, or else the time between stamps.

    Raises:
        ConfigError: the log does not say it, or is shorter than what is dropped.
    """
    if not steps:
        raise ConfigError("has no training line", file=source, expected="a training log, or printed results")
    first = steps[0].iteration
    chosen = [one for one in steps if window.skip <= one.iteration - first < window.skip + window.take]
    if not chosen:
        raise ConfigError(
            f"has {steps[-1].iteration - first + 1} iterations, and the first {window.skip} do not count",
            file=source,
            expected="a longer log, or a smaller --skip",
        )
    iterations = covered(chosen, first + window.skip, window.take)
    name = next((name for name in SPEEDS if any(name in one.values for one in chosen)), "")
    if rule == PRINTED:
        printed = _finite(chosen, name)
        if not printed:
            raise ConfigError(
                f"prints no {name} that is a number" if name else "prints no speed",
                file=source,
                expected=f"one of {', '.join(SPEEDS)}, or --rule time",
            )
        return Found(sum(printed) / len(printed), PRINTED, iterations, _told(chosen, name) - len(printed))
    costs = _finite(chosen, "batch_cost")
    if costs and sum(costs) > 0:
        speed = batch * devices * len(costs) / sum(costs)
        return Found(speed, "batch_cost", iterations, _told(chosen, "batch_cost") - len(costs))
    stamped = [one for one in chosen if one.at is not None]
    seconds = (stamped[-1].at or 0.0) - (stamped[0].at or 0.0) if stamped else 0.0
    if seconds <= 0:
        raise ConfigError("tells no time", file=source, expected="batch_cost or time stamps, or --rule printed")
    speed = batch * devices * (stamped[-1].iteration - stamped[0].iteration) / seconds
    return Found(speed, "timestamps", iterations)


def _finite(steps: Sequence[Step], name: str) -> list[float]:
    """What the steps say under that name, as far as it is a number."""
    return [one.values[name] for one in steps if math.isfinite(one.values.get(name, math.nan))]


def _told(steps: Sequence[Step], name: str) -> int:
    return sum(name in one.values for one in steps)


def covered(chosen: Sequence[Step], begin: int, take: int) -> int:
    """How many of the iterations that count the log tells of; a line speaks for those since the line before."""
    between = len(chosen) - 1
    every = (chosen[-1].iteration - chosen[0].iteration) // between if between else 1
    return min(take, chosen[-1].iteration - begin + max(1, every))


def _stamp(line: str) -> float | None:
    """When a line was printed, seconds since some moment; None when it does not say."""
    found = _STAMP.search(line[:60])
    if found is None:
        return None
    date = found["date"].replace("/", "-")
    try:
        at = datetime.fromisoformat(f"{date if len(date) == 10 else f'2000-{date}'}T{found['time']}+00:00")
    except ValueError:
        return None
    return at.timestamp() + float(f"0.{found['part'] or 0}")
