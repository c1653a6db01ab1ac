"""Bisection in noise: tipcflow's search beside `git bisect` with 1, 3 and 5 runs per commit.

Simulated: one of N commits changes the level by D standard deviations of a run. The bound is log2(N) / C(D), with
the capacity C of a binary-input Gaussian channel, bits per run; no rule needs fewer runs on average. Runs of both
ends (2 each, and 10 earlier accepted runs where the noise is unknown) are not counted for any rule. Failures: one
of N commits makes a share of the runs fail.

Prints tables and writes benchmarks/results/bisection.json.
"""

import argparse
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

from tipcflow.bisect import Levels, Noise, Search, log_failures, log_levels
from tipcflow.bisect.likelihood import log_known

RESULTS = Path(__file__).with_name("results") / "bisection.json"
EARLIER, LIMIT = 10, 400
Trial = tuple[int, bool, float]


def capacity(distance: float, samples: int = 40_000) -> float:
    """Bits per run of levels `distance` standard deviations apart."""
    source = random.Random(1)
    lost = fmean(math.log2(1 + math.exp(-distance * source.gauss(distance / 2, 1.0))) for _ in range(samples))
    return 1 - lost


def found(search: Search, measured: dict[int, list[float]], run: Callable[[int], float], change: int) -> Trial:
    """(runs, whether the result is right, its probability)."""
    runs = 0
    while not (assessment := search.assess(measured)).certain and runs < LIMIT:
        (version,) = assessment.next
        measured.setdefault(version, []).append(run(version))
        runs += 1
    return runs, assessment.best.versions == (change,), assessment.best.probability


def of_levels(source: random.Random, commits: int, distance: float, how: str) -> Trial:
    """One search for a change of the level."""
    change = source.randint(1, commits)

    def run(version: int) -> float:
        return source.gauss(distance if version >= change else 0.0, 1.0)

    if how.startswith("git"):
        tries = int(how[-1])
        return plain(
            commits, change, lambda version: fmean(run(version) for _ in range(tries)) > distance / 2, tries
        )
    if how == "known noise":
        levels = Levels(0.0, distance, 1.0)
        search = Search(commits + 1, lambda measured, versions: log_known(measured, versions, levels))
        return found(search, {0: [0.0], commits: [distance]}, run, change)
    earlier = [source.gauss(0.0, 1.0) for _ in range(EARLIER)]
    noise = Noise(stdev(earlier), EARLIER) if how == "unknown noise" else Noise()
    search = Search(commits + 1, lambda measured, versions: log_levels(measured, versions, noise))
    ends = {0: [run(0), run(0)], commits: [run(commits), run(commits)]}
    return found(search, ends, run, change)


def of_failures(source: random.Random, commits: int, share: float, how: str) -> Trial:
    """One search for a failure; the three runs of the bad end contain a failure."""
    change = source.randint(1, commits)

    def run(version: int) -> float:
        return float(version >= change and source.random() < share)

    if how.startswith("git"):
        tries = int(how[-1])
        return plain(commits, change, lambda version: any(run(version) for _ in range(tries)), tries)
    bad = [run(commits) for _ in range(3)]
    while not any(bad):
        bad.append(run(commits))
    return found(Search(commits + 1, log_failures), {0: [0.0, 0.0], commits: bad}, run, change)


def plain(commits: int, change: int, is_bad: Callable[[int], bool], each: int) -> Trial:
    """`git bisect`: trusts each result."""
    good, bad, runs = 0, commits, 0
    while bad - good > 1:
        middle = (good + bad) // 2
        runs += each
        good, bad = (good, middle) if is_bad(middle) else (middle, bad)
    return runs, bad == change, math.nan


HOWS = ("known noise", "unknown noise", "no earlier runs", "git bisect x 1", "git bisect x 3", "git bisect x 5")


def table(kind: str, cases: list[tuple[int, float]], trials: int, seed: int) -> list[dict[str, object]]:
    """Print and return the rows of one kind."""
    rows = []
    for commits, size in cases:
        bound = math.log2(commits) / capacity(size) if kind == "level" else math.log2(commits)
        for how in HOWS if kind == "level" else ("known noise", *HOWS[3:]):
            source = random.Random(f"{seed}/{kind}/{commits}/{size}/{how}")
            one = of_levels if kind == "level" else of_failures
            several = [one(source, commits, size, how) for _ in range(trials)]
            runs, right = fmean(trial[0] for trial in several), fmean(trial[1] for trial in several)
            claimed = fmean(trial[2] for trial in several)
            name = "tipcflow" if kind == "failure" and not how.startswith("git") else how
            row = {
                "kind": kind,
                "commits": commits,
                "size": size,
                "rule": name,
                "bound": bound,
                "runs": runs,
                "ratio": runs / bound,
                "right": right,
                "claimed": None if math.isnan(claimed) else claimed,
            }
            rows.append(row)
            print(_line(row), flush=True)
    return rows


def _head(size: str) -> str:
    names = ("commits", size, "rule", "bound", "runs", "ratio", "right", "claimed")
    return f"| {' | '.join(names)} |\n{'|---' * len(names)}|"


def _line(row: dict[str, object]) -> str:
    claimed = "-" if row["claimed"] is None else f"{row['claimed']:.3f}"
    figures = f"{row['bound']:.1f} | {row['runs']:.1f} | {row['ratio']:.2f} | {row['right']:.3f} | {claimed}"
    return f"| {row['commits']} | {row['size']:g} | {row['rule']} | {figures} |"


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261123)
    wanted = parser.parse_args()
    print(_head("shift / noise"))
    rows = table("level", [(32, 3.0), (64, 3.0), (64, 5.0), (128, 2.0)], wanted.trials, wanted.seed)
    print()
    print(_head("share of failures"))
    rows += table("failure", [(64, 1.0), (64, 0.9), (64, 0.5)], wanted.trials, wanted.seed)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"trials": wanted.trials, "seed": wanted.seed, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
