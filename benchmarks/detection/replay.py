"""Change-point detection on real CI measurements: alerts that go away again, and injected steps that are found.

    python benchmarks/detection/replay.py --series FILE.jsonl[.gz] [--seed 20261125]

The file has the form that `tipcflow detect --series` reads; the series have no labels. Every rule sees the same
points, through the function that its users call. Two figures per rule:

- *Gone away*: alerts on the series as they are whose shift the next `STAYS` points do not show: their median is
  nearer to the level before. It is an upper estimate of false alerts, per series and year of 52 runs.
- *Found*: steps of 3, 5 and 8 standard deviations, for the worse, injected into quiet stretches after `QUIET`
  points; the quarters of a quiet stretch have the same median. A step is found if an alert in its direction
  begins within `SOON` or `WITHIN` points; the first of them has the delay 1.

`--half tune|hold` takes every second series by name, the first or the second ones: the thresholds were chosen on
the first half only. `--otava PYTHON` adds Apache Otava (its environment's Python), which costs minutes.

The confirm runs of a point are the level at this point plus other residuals of the same stretch: one, and `MORE`
further ones for rules that request them. `optimum` is the
mean delay of a CUSUM that knows noise, level and step (Moustakides) at 0.05 false alerts a year, for normal noise.

Prints a table and writes benchmarks/results/replay.json.
"""

import argparse
import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

import optimum
from rules import RULES
from run import otava

from tipcflow.check.baseline.run_by_run import judge_run_by_run
from tipcflow.check.detect import Point, Series, judge_series
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy

ROOT = Path(__file__).resolve().parents[2]
QUIET, AFTER, SOON, WITHIN, STAYS, YEAR = 40, 12, 4, 12, 8, 52
TIMES = (3.0, 5.0, 8.0)
MORE = 2
FALSE_PER_YEAR = 0.05
Raised = list[tuple[int, float]]
Judge = Callable[[Series], Raised]


def policy(name: str) -> Policy:
    """A shipped policy."""
    return load_yaml(ROOT / "configs" / "policies" / f"{name}.yaml", Policy)


def detector(name: str) -> Judge:
    """The detector alone, as `tipcflow detect` calls it."""
    rule = policy(name).detect
    return lambda series: [(one.index, one.size) for one in next(judge_series([series], rule))]


class Checks:
    """The checks of a run, as `tipcflow detect --metric batch_cost` calls them.

    Attributes:
        asked: confirm runs that they have requested.
    """

    def __init__(self, name: str) -> None:
        self._policy, self.asked = policy(name), 0

    def __call__(self, series: Series) -> Raised:
        """The alerts of a series."""
        points = list(judge_run_by_run(series, "batch_cost", self._policy, accept_changes=True))
        self.asked += sum(one.asked for one in points)
        return [(one.index, one.change.size) for one in points if one.change is not None]


def checks(name: str) -> Judge:
    """The checks of a run by a shipped policy."""
    return Checks(name)


def without_confirm(judge: Judge) -> Judge:
    """The same without confirm runs."""

    def alone(series: Series) -> Raised:
        return judge(replace(series, points=tuple(one._replace(confirm=None, more=()) for one in series.points)))

    return alone


def read(path: Path) -> list[Series]:
    """The series of a file; points without samples are left out."""
    text = path.read_bytes()
    lines = (gzip.decompress(text) if path.suffix == ".gz" else text).splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        Series(
            row["id"],
            row["unit"],
            row["direction"] == "higher",
            tuple(
                Point(one["run"], one["node"], median(one["samples"])) for one in row["points"] if one["samples"]
            ),
        )
        for row in rows
    ]


def half(series: list[Series], which: str | None) -> list[Series]:
    """Every second series by name."""
    if which is None:
        return series
    first = sorted(one.id for one in series)[::2]
    return [one for one in series if (one.id in first) == (which == "tune")]


def confirmed(series: Series, source: random.Random, further: random.Random) -> Series:
    """The series with confirm samples: the level around a point plus the residual of a neighbor.

    Args:
        further: of further confirm samples, so that the first ones do not depend on their number.
    """
    values = [one.value or 0.0 for one in series.points]
    points = []
    for at, point in enumerate(series.points):
        # The point's own residual is what the confirm run is to check.
        near = values[max(0, at - STAYS) : at] + values[at + 1 : at + STAYS + 1]
        # The level after the point if the point agrees with it, else the level before it.
        sides = [
            median(side) for side in (values[max(0, at - STAYS) : at], values[at + 1 : at + 1 + STAYS]) if side
        ]
        level = min(sides, key=lambda side: abs(side - values[at]))
        again = level + source.choice(near) - median(near)
        more = tuple(level + further.choice(near) - median(near) for _ in range(MORE))
        points.append(point._replace(confirm=again, more=more))
    return replace(series, points=tuple(points))


def gone_away(series: Series, raised: Raised) -> int:
    """Alerts whose shift is not there in the next points."""
    values = [one.value or 0.0 for one in series.points]
    gone = 0
    for index, size in raised:
        later = values[index + 1 : index + 1 + STAYS]
        if len(later) < STAYS:
            continue
        base = median(values[max(0, index - QUIET) : index])
        gone += (median(later) / base - 1) / size < 0.5
    return gone


@dataclass(frozen=True)
class Stretch:
    """Points without a change, and the robust standard deviation around their median."""

    values: tuple[float, ...]
    level: float
    sigma: float


def stretches(series: Series) -> Iterator[Stretch]:
    """Quiet stretches that do not overlap."""
    values, at, length = [one.value or 0.0 for one in series.points], 0, QUIET + AFTER
    while at + length <= len(values):
        part = values[at : at + length]
        level = median(part)
        sigma = 1.4826 * median([abs(one - level) for one in part])
        quarters = [median(part[i : i + length // 4]) for i in range(0, length, length // 4)]
        if sigma and max(quarters) - min(quarters) <= 1.2 * sigma:
            yield Stretch(tuple(part), level, sigma)
            at += length
        else:
            at += STAYS


def stepped(stretch: Stretch, times: float, source: random.Random, further: random.Random) -> Series:
    """The stretch with a step after `QUIET` points, and confirm samples from its residuals."""
    points = []
    for at, value in enumerate(stretch.values):
        step = times * stretch.sigma * (at >= QUIET)
        again = source.choice(stretch.values) + step
        more = tuple(further.choice(stretch.values) + step for _ in range(MORE))
        points.append(Point(f"r{at}", "", value + step, again, more))
    return Series("s", "ns", False, tuple(points))


def averaged(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The means of rows of figures; a mean delay only of rounds that found a step."""
    made: dict[str, Any] = {}
    for key, value in rows[0].items():
        values = [row[key] for row in rows if row[key] is not None]
        made[key] = averaged(values) if isinstance(value, dict) else mean(values) if values else None
    return made


def measured(judge: Judge, series: list[Series], quiet: list[Stretch], seed: int) -> dict[str, Any]:
    """The figures of a rule."""
    source, further = random.Random(seed), random.Random(f"further {seed}")
    years, alerts, gone = 0.0, 0, 0
    before = getattr(judge, "asked", None)
    for one in series:
        raised = judge(confirmed(one, source, further))
        alerts, gone, years = alerts + len(raised), gone + gone_away(one, raised), years + len(one.points) / YEAR
    row: dict[str, Any] = {"alerts": alerts / years, "gone": gone / years, "confirm_runs": None}
    if before is not None:
        row["confirm_runs"] = (getattr(judge, "asked", before) - before) / years
    for times in TIMES:
        delays = []
        for stretch in quiet:
            raised = judge(stepped(stretch, times, source, further))
            found = [at for at, size in raised if at >= QUIET and size > 0]
            delays.append(found[0] - QUIET + 1 if found else None)
        seen = [delay for delay in delays if delay is not None]
        row[f"{times:g}"] = {
            "soon": sum(delay <= SOON for delay in seen) / len(delays),
            "within": len(seen) / len(delays),
            "delay": mean(seen) if seen else None,
        }
    return row


def main() -> None:
    """Print the table and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=20261125)
    parser.add_argument("--rounds", type=int, default=1, help="number of draws of the confirm runs, averaged")
    parser.add_argument("--half", choices=("tune", "hold"), help="every second series by name")
    parser.add_argument("--only", default="", help="only the rule of this name, or all whose name contains it")
    parser.add_argument("--otava", default="", help="Python of an environment with apache-otava")
    args = parser.parse_args()
    series = half(read(args.series), args.half)
    quiet = [stretch for one in series for stretch in stretches(one)]
    judges: dict[str, Judge] = {}
    for name in ("weekly", "pr"):
        judges[f"detect {name}"] = detector(name)
        judges[f"detect {name}, no confirm run"] = without_confirm(detector(name))
        judges[f"checks {name}"] = checks(name)
        judges[f"checks {name}, no confirm run"] = without_confirm(checks(name))
    judges |= RULES
    if args.otava:
        judges["Otava"] = lambda series: otava(args.otava)([series])[0]
    chosen = [args.only] if args.only in judges else [name for name in judges if args.only in name]
    judges = {name: judges[name] for name in chosen}
    noise = sorted(one.sigma / one.level for one in quiet)
    print(f"{len(series)} series, {len(quiet)} quiet stretches, noise {noise[0]:.1%} to {noise[-1]:.1%}")
    print(
        "optimum delay: "
        + ", ".join(f"{times:g} sigma {optimum.delay(times, FALSE_PER_YEAR):.2f}" for times in TIMES)
    )
    head = "".join(f"{f'{times:g} sigma: soon/within/delay':>30}" for times in TIMES)
    print(f"{'per series-year':32}{'alerts':>8}{'gone':>7}{'confirm':>9}{head}")
    rows: dict[str, Any] = {}
    for name, judge in judges.items():
        row = averaged([measured(judge, series, quiet, args.seed + number) for number in range(args.rounds)])
        rows[name] = row
        cells = ""
        for times in TIMES:
            cell = row[f"{times:g}"]
            delay = "-" if cell["delay"] is None else f"{cell['delay']:.1f}"
            cells += f"{cell['soon']:>18.2f}{cell['within']:>6.2f}{delay:>6}"
        asked = "-" if row["confirm_runs"] is None else f"{row['confirm_runs']:.1f}"
        print(f"{name:32}{row['alerts']:>8.2f}{row['gone']:>7.3f}{asked:>9}{cells}", flush=True)
    if not args.otava and args.only in "Otava":
        rows["Otava"] = {"status": "not_run", "reason": "--otava names no Python with apache-otava"}
        print(f"{'Otava':32}not_run: {rows['Otava']['reason']}")
    target = ROOT / "benchmarks" / "results" / "replay.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(
        json.dumps({"series": args.series.name, "seed": args.seed, "half": args.half, "rules": rows}, indent=1)
    )


if __name__ == "__main__":
    main()
