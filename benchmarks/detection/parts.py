"""What the number of runs until an alert consists of: an ideal test that loses its knowledge bit by bit.

    python benchmarks/detection/parts.py [--paths 4000] [--seed 20261127]

Weekly runs with normal noise and one step for the worse. If the score of a week reaches `ask`, confirm runs follow
in that week while it does, up to a number. The score is the largest of all splits of the last `SPAN` weeks. Each
line of the table has one restriction more than the line before it, and a limit of its own with the same rate of
false alerts, from as many series without a step. *Runs*: runs and confirm runs from the step until the alert, as
multiples of Wald's number (`optimum.runs`), and the confirm runs per year without a step. Writes
benchmarks/results/parts.json.
"""

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optimum

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
ROOT = Path(__file__).resolve().parents[2]
STEPS = (2.0, 3.0, 5.0)
FALSE_PER_YEAR, ASK, SPAN, LEAST, AT, WEEKS = 0.01, 1.8, 6, 8, 26, 78


@dataclass(frozen=True)
class Test:
    """A sequential test.

    Attributes:
        step, level, noise: whether it knows the step's size, the level and the standard deviation.
        most: confirm runs in a week at most.
        least: confirm runs in a week that an alert requires; each must show half of the change.
    """

    name: str
    step: bool = True
    level: bool = True
    noise: bool = True
    most: int = 6
    least: int = 0


def tests() -> list[Test]:
    """Each with one restriction more."""
    made = [Test("level, noise and step known")]
    for name, fields in (
        ("step unknown", {"step": False}),
        ("level estimated", {"level": False}),
        ("noise estimated", {"noise": False}),
        ("an alert requires a confirm run", {"least": 1}),
        ("at most one confirm run a week", {"most": 1}),
        ("an alert requires three confirm runs", {"most": 3, "least": 3}),
    ):
        made.append(replace(made[-1], name=name, **fields))
    return made


class Series:
    """Many series at once: sums of the weeks' runs, up to the present week."""

    def __init__(self, paths: int, times: float, source: np.random.Generator) -> None:
        self.times, self._source, self.paths = times, source, paths
        self.sums = np.zeros((3, WEEKS + 1, paths))  # number, sum, sum of squares of all runs before a week
        self.asked = np.zeros(paths)

    def measure(self, week: int, which: Mask) -> Array:
        """Add one run of a week to some series; return its values."""
        values = self._source.normal(self.times * (week >= AT), 1, self.paths)
        self.sums[:, week + 1, which] += np.stack([np.ones(self.paths), values, values**2])[:, which]
        return values

    def score(self, test: Test, week: int, times: float) -> tuple[Array, Array]:
        """Score and shift of the best split."""
        best, shift = np.full(self.paths, -np.inf), np.zeros(self.paths)
        now = self.sums[:, week + 1]
        for first in range(max(LEAST, week - SPAN + 1), week + 1):
            old = self.sums[:, first]
            count, total, _ = now - old
            mean = np.zeros(self.paths) if test.level else old[1] / old[0]
            off = total / count - mean
            variance = 1 / count + (0.0 if test.level else 1 / old[0])
            if test.step:  # log-likelihood ratio as a score
                gain = times * total - count * times**2 / 2
                score = np.sign(gain) * np.sqrt(2 * np.abs(gain))
            elif test.noise:
                score = off / np.sqrt(variance)
            else:
                freedom = old[0] - 1
                squares = (old[2] - old[1] ** 2 / old[0]) / freedom
                score = np.sign(off) * np.sqrt(freedom * np.log1p(off**2 / (variance * squares) / freedom))
            shift = np.where(score > best, off, shift)
            best = np.maximum(best, score)
        return best, shift


def run(
    test: Test, source: np.random.Generator, paths: int, times: float, step: float, limit: float = np.inf
) -> tuple[Array, Array, Array]:
    """Return (score by which an alert is decided, runs since the step; both by week), and confirm runs a year.

    No confirm run follows an alert of the week.

    Args:
        times: size of the step in the series, 0 for none.
        step: the size that the test knows.
    """
    series = Series(paths, times, source)
    everywhere = np.ones(paths, bool)
    decided, runs = np.full((WEEKS, paths), -np.inf), np.zeros((WEEKS, paths))
    for week in range(WEEKS):
        series.sums[:, week + 1] = series.sums[:, week]
        series.measure(week, everywhere)
        runs[week] = runs[week - 1] + 1 if week > AT else 1.0
        if week < LEAST:
            continue
        asks, smallest = everywhere, np.full(paths, np.inf)
        for confirms in range(test.most + 1):
            score, shift = series.score(test, week, step)
            agrees = smallest >= 0.5 * shift
            counts = asks & agrees & (confirms >= test.least)
            decided[week] = np.where(counts, np.maximum(decided[week], score), decided[week])
            asks = asks & agrees & (score >= ASK) & (decided[week] < limit)
            if confirms == test.most or not asks.any():
                break
            values = series.measure(week, asks)
            smallest = np.where(asks, np.minimum(smallest, values), smallest)
            series.asked += asks
            runs[week] += asks
    return decided, runs, series.asked * 52 / WEEKS


def limit_of(test: Test, paths: int, seed: int, step: float) -> tuple[float, float]:
    """Return the limit with `FALSE_PER_YEAR`, and the confirm runs per year; both from series without a step."""
    decided, _, asked = run(test, np.random.default_rng([seed, 0]), paths, 0.0, step)
    share = 1 - np.exp(-FALSE_PER_YEAR * (WEEKS - AT) / 52)
    return float(np.quantile(decided[AT:].max(axis=0), 1 - share)), float(asked.mean())


def row(test: Test, paths: int, seed: int) -> dict[str, Any]:
    """The figures of a test."""
    found: dict[str, Any] = {"test": test.name}
    known = {step: limit_of(test, 4 * paths, seed, step) for step in (STEPS if test.step else STEPS[:1])}
    for step in STEPS:
        limit, asked = known.get(step, known[STEPS[0]])
        source = np.random.default_rng([seed, round(step * 10)])
        decided, runs, _ = run(test, source, paths, step, step, limit)
        alerts = decided[AT:] >= limit
        at = np.where(alerts.any(axis=0), alerts.argmax(axis=0), len(alerts) - 1)
        used = runs[AT:][at, np.arange(paths)]
        found[f"{step:g}"] = {
            "limit": limit,
            "found": float(alerts.any(axis=0).mean()),
            "weeks": float(at.mean() + 1),
            "runs": float(used.mean()),
            "ratio": float(used.mean() / optimum.runs(step, FALSE_PER_YEAR)),
            "confirm_runs": asked,
        }
    return found


def main() -> None:
    """Print the table and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, default=4000, help="series with a step; four times as many without")
    parser.add_argument("--seed", type=int, default=20261127)
    given = parser.parse_args()
    print(f"| runs / Wald, weeks | {' | '.join(f'{step:g} sigma' for step in STEPS)} | confirm runs a year |")
    print("|---" * (len(STEPS) + 2) + "|")
    rows = []
    for test in tests():
        rows.append(row(test, given.paths, given.seed))
        cells = [f"{rows[-1][f'{step:g}']['ratio']:.2f}, {rows[-1][f'{step:g}']['weeks']:.1f}" for step in STEPS]
        print(f"| {test.name} | {' | '.join(cells)} | {rows[-1]['3']['confirm_runs']:.1f} |", flush=True)
    target = ROOT / "benchmarks" / "results" / "parts.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"seed": given.seed, "paths": given.paths, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
