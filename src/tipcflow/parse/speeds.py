"""What one file says of a training's speed: printed results, a benchmark's JSON, or a training log.

    logs/paddle-plsc/arcface/bz128/4n8g/r50_b128_fp32_4.log {1: 11165.17, 4: 11077.58}
    {"model_name": "ResNet50_bs256_fp32_MultiP_DP", "ips": 2564.1, "device_num": "N4C32", "speed_unit": "images/s"}

Of a training log the first iterations are dropped and the next ones counted: DLPerf takes 100 after 50.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from tipcflow.domain import ConfigError, Phase
from tipcflow.parse.formats import AUTO, line_formats
from tipcflow.parse.pairs import NUMBER
from tipcflow.parse.scaling import Speed, named, topology_in
from tipcflow.parse.scan import Scan

PRINTED, TIME = "printed", "time"
_RESULT = re.compile(rf"^\s*(?P<path>\S+)\s+\{{(?P<speeds>(?:\d{{1,9}}: {NUMBER}(?:, )?)+)\}}\s*$")
_REPEAT = re.compile(rf"(\d{{1,9}}): ({NUMBER})")
_STAMP = re.compile(
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,6}))?"
)
# Of the metrics that say how fast, the first that a log has.
SPEEDS = ("ips", "throughput", "qps", "speed")


class Window(NamedTuple):
    """Which iterations count: `take` after the first `skip`."""

    skip: int = 50
    take: int = 100


class Step(NamedTuple):
    """One training line: its iteration counted over the whole log, when it was printed, what it says."""

    iteration: int
    at: float | None
    values: dict[str, float]


def results_in(lines: Iterable[str]) -> Iterator[Speed]:
    """Speeds that stand in a text as results of whole trainings."""
    for line in lines:
        found = _RESULT.match(line)
        topology = topology_in(found["path"]) if found else None
        if found and topology:
            model, precision, batch, _ = named(found["path"])
            for repeat, speed in _REPEAT.findall(found["speeds"]):
                yield Speed(
                    model=model, precision=precision, topology=topology, repeat=int(repeat), speed=float(speed),
                    batch=batch, source=found["path"],
                )  # fmt: skip
        elif line.lstrip().startswith("{") and '"ips"' in line:
            yield from _benchmark(line)


def _benchmark(line: str) -> Iterator[Speed]:
    try:
        told = json.loads(line)
        topology = topology_in(str(told["device_num"]))
        model = re.sub(r"_bs\d+_.*", "", str(told["model_name"]))
        if topology:
            yield Speed(model=model, precision=str(told.get("fp_item", "")), topology=topology, repeat=0,
                        speed=float(told["ips"]), batch=int(told.get("batch_size", 0)), source=model)  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return


def steps_in(lines: Iterable[tuple[int, str]], log_format: str = AUTO) -> Iterator[Step]:
    """The training lines of a log of one rank."""
    scan = Scan(line_formats(log_format))
    base, last, gap = 0, -1, 1
    for offset, raw in lines:
        line, spotted = scan.line(raw)
        samples = [] if spotted is None else list(scan.samples_in(line, spotted, offset=offset))
        values = {one.metric: one.value for one in samples if one.phase is Phase.TRAIN}
        if not values or not {*SPEEDS, "batch_cost", "loss"} & set(values):
            continue
        iteration = samples[0].iteration
        if iteration < 0:
            iteration = last + 1
        elif iteration <= last:
            # Iterations start again with every epoch.
            base += last + gap
        elif last >= 0:
            gap = iteration - last
        last = iteration
        yield Step(base + iteration, _stamp(line), values)


def counting(steps: Iterable[Step], window: Window) -> Iterator[Step]:
    """The steps up to the end of the window; what comes after it is not even read."""
    first: int | None = None
    for step in steps:
        first = step.iteration if first is None else first
        if step.iteration - first >= window.skip + window.take:
            return
        yield step


def speed_of(
    steps: Sequence[Step], *, rule: str, batch: int, devices: int, window: Window, source: str
) -> tuple[float, str]:
    """(samples per second of all devices, where that comes from) of one training log.

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
    name = next((name for name in SPEEDS if any(name in one.values for one in chosen)), "")
    if rule == PRINTED:
        if not name:
            raise ConfigError(
                "prints no speed", file=source, expected=f"one of {', '.join(SPEEDS)}, or --rule time"
            )
        printed = [one.values[name] for one in chosen if name in one.values]
        return sum(printed) / len(printed), PRINTED
    costs = [one.values["batch_cost"] for one in chosen if "batch_cost" in one.values]
    if costs and sum(costs) > 0:
        return batch * devices * len(costs) / sum(costs), "batch_cost"
    stamped = [one for one in chosen if one.at is not None]
    seconds = (stamped[-1].at or 0.0) - (stamped[0].at or 0.0) if stamped else 0.0
    if seconds <= 0:
        raise ConfigError("tells no time", file=source, expected="batch_cost or time stamps, or --rule printed")
    return batch * devices * (stamped[-1].iteration - stamped[0].iteration) / seconds, "timestamps"


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
