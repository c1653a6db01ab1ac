"""What confirm runs can reach on real series: an oracle that knows where a change would begin.

    python benchmarks/detection/bound.py --series FILE.jsonl[.gz] [--seed 100] [--rounds 8]

The oracle decides from `gone.POINTS` points, the 40 before, and confirm runs as in `replay.py`. If the smallest
deviation of the points reaches a first threshold, at most `--most` confirm runs follow one after the other, until
one deviates by less than a second threshold; if none does, there is an alert. Deviations are in robust standard
deviations. Both thresholds are tuned on the same series: each row is the best pair that finds a
share of the steps of 3 standard deviations, with at most `--budget` confirm runs per series-year. So it is a bound
for this family of rules, and no rule.

Prints the means of the draws per series-year, and the least and most alerts that go away of a draw; writes
benchmarks/results/bound.json.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import gone
import replay

from tipcflow.check.detect import Series

SHARES = (0.9, 0.85, 0.8, 0.7, 0.6)
# Shares of the steps that pass the first threshold, relative to those that the row finds.
FIRST = (1.0, 1.02, 1.04, 1.06, 1.08, 1.1, 1.14)


@dataclass(frozen=True)
class Window:
    """Deviations of the points, the smallest one, and of the confirm runs in their order."""

    points: float
    confirms: tuple[float, ...]


@dataclass
class Record:
    """A series, and the confirm runs of its points."""

    series: Series
    draws: list[list[float]]

    def __post_init__(self) -> None:
        self.values = [point.value or 0.0 for point in self.series.points]
        self._known: dict[tuple[int, int], Window] = {}

    def window(self, since: int, at: int) -> Window | None:
        """The window that begins at a point, with a level that began at `since`; None with too short a level."""
        first = max(since, at - replay.QUIET)
        if at - first < 12:
            return None
        if (first, at) not in self._known:
            after = self.values[at : at + gone.POINTS]
            again = [draw[at + number] for draw in self.draws for number in range(gone.POINTS)]
            self._known[first, at] = window(self.values[first:at], after, again)
        return self._known[first, at]


def window(before: list[float], after: list[float], again: list[float]) -> Window:
    """The deviations of points and confirm runs, on the side of the points' median."""
    level = median(before)
    spread = 1.4826 * median([abs(one - level) for one in before]) or 1e-9 * abs(level)
    side = 1 if median(after) >= level else -1
    away = [side * (one - level) / spread for one in again]
    return Window(gone.farthest(before, after), tuple(away))


def decided(one: Window, first: float, second: float, most: int) -> tuple[bool, int]:
    """Whether there is an alert, and the number of confirm runs."""
    if one.points < first:
        return False, 0
    for number, away in enumerate(one.confirms[:most], 1):
        if away < second:
            return False, number
    return True, most


def records(series: list[Series], seed: int, most: int) -> list[Record]:
    """The series with enough draws of confirm runs: one draw has one for each point."""
    source, made = random.Random(seed), []
    for one in series:
        draws = [replay.confirmed(one, source, source) for _ in range(-(-most // gone.POINTS))]
        made.append(Record(one, [[point.confirm or 0.0 for point in drawn.points] for drawn in draws]))
    return made


def steps(series: list[Series], seed: int, most: int) -> Iterator[Window]:
    """The windows of the steps of 3 standard deviations."""
    source = random.Random(seed)
    for one in series:
        for stretch in replay.stretches(one):
            values, step = list(stretch.values), 3 * stretch.sigma
            after = [value + step for value in values[replay.QUIET : replay.QUIET + gone.POINTS]]
            again = [source.choice(values) + step for _ in range(most)]
            yield window(values[: replay.QUIET], after, again)


def gone_away(made: list[Record], first: float, second: float, most: int) -> tuple[int, int]:
    """Numbers of alerts that go away, and of confirm runs."""
    away = runs = 0
    for one in made:
        at, since = 20, 0
        while at + gone.POINTS + replay.STAYS <= len(one.values):
            found = one.window(since, at)
            raised, asked = decided(found, first, second, most) if found else (False, 0)
            runs += asked
            if raised:
                before, after = one.values[since:at][-replay.QUIET :], one.values[at : at + gone.POINTS]
                size = median(after) / median(before) - 1
                away += bool(size) and replay.gone_away(one.series, [(at + gone.POINTS - 1, size)])
                since, at = at, at + gone.POINTS
            at += 1
    return away, runs


def second_of(found: list[Window], first: float, share: float, most: int) -> float | None:
    """The largest second threshold that finds the share; None if the first one already misses more."""
    least = sorted((min(one.confirms[:most]) for one in found if one.points >= first), reverse=True)
    wanted = -(-round(share * len(found) * 1000) // 1000)
    return least[wanted - 1] if most and 0 < wanted <= len(least) else None


def rows(series: list[Series], seed: int, most: int, budget: float) -> list[dict[str, Any]]:
    """The best pair of thresholds of each share and number of confirm runs."""
    years = sum(len(one.points) for one in series) / replay.YEAR
    made, found = records(series, seed, most), list(steps(series, seed, most))
    scores, best = sorted((one.points for one in found), reverse=True), []
    for share in SHARES:
        for count in range(1, most + 1):
            tried = []
            for more in FIRST:
                first = scores[min(len(scores), -(-round(share * more * len(scores) * 1000) // 1000)) - 1]
                second = second_of(found, first, share, count)
                if second is None:
                    continue
                away, runs = gone_away(made, first, second, count)
                tried.append((runs / years > budget, away / years, runs / years, first, second))
            if tried:
                over, away, runs, first, second = min(tried)
                row = {"found": share, "confirms": count, "gone": away, "runs": runs, "over_budget": over}
                best.append(row | {"first": first, "second": second})
    return best


def averaged(drawn: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The means of the draws' rows, and the range of the alerts that go away."""
    made = []
    for share in SHARES:
        for count in sorted({row["confirms"] for draw in drawn for row in draw}):
            same = [row for draw in drawn for row in draw if (row["found"], row["confirms"]) == (share, count)]
            if same:
                row = {name: mean(one[name] for one in same) for name in same[0]}
                away = [one["gone"] for one in same]
                made.append(row | {"draws": len(same), "least": min(away), "most": max(away)})
    return made


def main() -> None:
    """Print the table and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=8, help="number of draws of the confirm runs")
    parser.add_argument("--most", type=int, default=4, help="confirm runs of an alert")
    parser.add_argument("--budget", type=float, default=5.5, help="confirm runs per series-year")
    args = parser.parse_args()
    series = replay.read(args.series)
    drawn = [rows(series, args.seed + number, args.most, args.budget) for number in range(args.rounds)]
    head = ("gone", "least", "most", "runs", "draws")
    print(f"{'found':>8}{'confirms':>10}{''.join(f'{name:>8}' for name in head)}{'over budget':>13}")
    for row in averaged(drawn):
        cells = "".join(f"{row[name]:8.3f}" for name in ("gone", "least", "most", "runs"))
        print(f"{row['found']:8.2f}{row['confirms']:10.0f}{cells}{row['draws']:8}{row['over_budget']:13.2f}")
    target = replay.ROOT / "benchmarks" / "results" / "bound.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"series": args.series.name, "draws": drawn}, indent=1))


if __name__ == "__main__":
    main()
