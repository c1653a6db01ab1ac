"""Alerts on real series that go away again: which of them were right, and what an oracle reaches.

    python benchmarks/detection/gone.py --series FILE.jsonl[.gz] [--seed 100] [--rounds 2] [--oracle]

The alerts are those of the checks of the policy `weekly`, with confirm runs as in `replay.py`. The *event* of an
alert that went away is the run of adjacent points around the alert that are nearer to the level of the alert than
to the level before. The noise is the larger one of the robust standard deviation of the `QUIET` points before and
of their 90 % quantile, so that heavy tails count. Classes, in this order:

- *moved*: at least 3 points, with a median more than 3 standard deviations away: the level moved, and returned.
- *groups*: at least 10 % of the points before were at the level of the event: the runs form groups.
- *short*: 1 or 2 points, which their confirm run repeated.
- *small*: the rest.

`--oracle` prints the trade-off of a rule that knows where a change would begin: 4 points and the 40 before, one
threshold, tuned on the same series. *Not moved*: without the alerts of the class *moved*.

Prints tables and writes benchmarks/results/gone.json.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import replay

from tipcflow.check.detect import Series

POINTS, LASTS, SIGMAS, SHARE = 4, 3, 3.0, 0.1
CLASSES = ("moved", "groups", "short", "small")
FOUND = (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)


def noise(before: list[float]) -> float:
    """The standard deviation of points; heavy tails count."""
    level = median(before)
    away = sorted(abs(one - level) for one in before)
    return max(1.4826 * median(away), away[int(0.9 * len(away))] / 1.645, 1e-9 * abs(level))


def kind(values: list[float], index: int, size: float) -> dict[str, Any]:
    """The class of an alert that went away, with the figures that decide it."""
    before = values[max(0, index - replay.QUIET) : index]
    base = median(before)

    def shifted(value: float) -> bool:
        return (value / base - 1) / size >= 0.5

    first = last = index
    while first > 0 and shifted(values[first - 1]):
        first -= 1
    while last + 1 < len(values) and shifted(values[last + 1]):
        last += 1
    event = values[first : last + 1]
    quiet = values[max(0, first - replay.QUIET) : first] or before
    sigmas = abs(median(event) - median(quiet)) / noise(quiet)
    same = mean(shifted(one) for one in quiet)
    if len(event) >= LASTS and sigmas > SIGMAS:
        name = "moved"
    elif same >= SHARE:
        name = "groups"
    else:
        name = "short" if len(event) < LASTS else "small"
    return {"class": name, "at": index, "points": len(event), "sigmas": sigmas, "before": same, "size": size}


def classified(judge: replay.Judge, series: list[Series], seed: int) -> list[dict[str, Any]]:
    """The alerts that went away, of all series."""
    source, further, found = random.Random(seed), random.Random(f"further {seed}"), []
    for one in series:
        values = [point.value or 0.0 for point in one.points]
        for alert in judge(replay.confirmed(one, source, further)):
            if replay.gone_away(one, [alert]):
                found.append({"series": one.id, **kind(values, *alert)})
    return found


def farthest(before: list[float], after: list[float]) -> float:
    """The smallest deviation of the points after, on the side of their median, in robust standard deviations."""
    level = median(before)
    spread = 1.4826 * median([abs(one - level) for one in before]) or 1e-9 * abs(level)
    side = 1 if median(after) >= level else -1
    return min(side * (one - level) for one in after) / spread


def middle(before: list[float], after: list[float]) -> float:
    """The deviation of the median of the points after, in standard deviations that count heavy tails."""
    return abs(median(after) - median(before)) / noise(before)


def raised(series: Series, score: Callable[[list[float], list[float]], float], least: float) -> replay.Raised:
    """The alerts of the oracle's rule; each begins a new level."""
    values, at, since, found = [one.value or 0.0 for one in series.points], 20, 0, []
    while at + POINTS + replay.STAYS <= len(values):
        before, after = values[max(since, at - replay.QUIET) : at], values[at : at + POINTS]
        if len(before) >= 12 and score(before, after) >= least:
            size = median(after) / median(before) - 1
            if size:
                found.append((at + POINTS - 1, size))
            since, at = at, at + POINTS
        at += 1
    return found


def oracle(series: list[Series], score: Callable[[list[float], list[float]], float]) -> list[dict[str, float]]:
    """The rows of the trade-off: found share of 3 standard deviations, and alerts that go away per series-year."""
    years = sum(len(one.points) for one in series) / replay.YEAR
    quiet = [stretch for one in series for stretch in replay.stretches(one)]
    scores = []
    for stretch in quiet:
        after = [one + 3 * stretch.sigma for one in stretch.values[replay.QUIET : replay.QUIET + POINTS]]
        scores.append(score(list(stretch.values[: replay.QUIET]), after))
    scores.sort()
    rows = []
    for share in FOUND:
        least, gone, false = scores[int((1 - share) * len(scores))], 0, 0
        for one in series:
            values = [point.value or 0.0 for point in one.points]
            for alert in raised(one, score, least):
                if replay.gone_away(one, [alert]):
                    gone, false = gone + 1, false + (kind(values, *alert)["class"] != "moved")
        rows.append({"found": share, "least": least, "gone": gone / years, "not_moved": false / years})
    return rows


def main() -> None:
    """Print the tables and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2, help="number of draws of the confirm runs")
    parser.add_argument("--oracle", action="store_true", help="the trade-off of the oracle, and not the checks")
    args = parser.parse_args()
    series = replay.read(args.series)
    years = sum(len(one.points) for one in series) / replay.YEAR
    made: dict[str, Any] = {"series": args.series.name, "years": years}
    if args.oracle:
        for score in (farthest, middle):
            made[score.__name__] = oracle(series, score)
            print(f"{score.__name__}: found, threshold, gone away, not moved, per series-year")
            for row in made[score.__name__]:
                print("".join(f"{value:10.3f}" for value in row.values()), flush=True)
    else:
        made["draws"] = []
        for number in range(args.rounds):
            found = classified(replay.checks("weekly"), series, args.seed + number)
            made["draws"].append(found)
            for one in found:
                print(*(f"{value:.2f}" if isinstance(value, float) else value for value in one.values()))
            count = Counter(one["class"] for one in found)
            print(f"draw {number}:", ", ".join(f"{name} {count[name]}" for name in CLASSES), flush=True)
            print(
                f"gone away {len(found) / years:.3f}, not moved {(len(found) - count['moved']) / years:.3f} a year"
            )
    target = replay.ROOT / "benchmarks" / "results" / "gone.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
