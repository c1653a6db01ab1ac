"""Bisection in noise: tipcflow's search beside `git bisect` with 1, 3 and 5 runs per commit.

Also: searches with right and wrong priors, and with several runs at the same time.

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

from tipcflow.bisect import (
    Levels,
    Noise,
    Search,
    Touches,
    error_of_levels,
    level_outcomes,
    log_failures,
    log_levels,
    prior_probabilities,
)
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
    ends = {0: [run(0), run(0)], commits: [run(commits), run(commits)]}
    noise = Noise.of(earlier, ends[0]) if how == "unknown noise" else Noise()
    search = Search(
        commits + 1,
        lambda measured, versions: log_levels(measured, versions, noise),
        outcomes=lambda measured, posterior, place: level_outcomes(measured, posterior, place, noise),
    )
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
                "trials": trials,
                "runs_error": stdev(trial[0] for trial in several) / math.sqrt(trials),
            }
            rows.append(row)
            print(_line(row), flush=True)
    return rows


# What 64 commits touch, and what the commit touches that brought the change.
_FEW = (Touches.CHAIN,) * 2 + (Touches.DOCUMENTATION,) * 10 + (Touches.OTHER,) * 52
_MANY = (Touches.CHAIN,) * 63 + (Touches.OTHER,)
PRIORS: dict[str, tuple[tuple[Touches, ...], Touches]] = {
    "none": ((Touches.OTHER,) * 64, Touches.OTHER),
    "right: one of 2 commits of the chain": (_FEW, Touches.CHAIN),
    "wrong: one of 52 others": (_FEW, Touches.OTHER),
    "wrong: one of 10 of documentation": (_FEW, Touches.DOCUMENTATION),
    "wrong: the only other one, 63 of the chain": (_MANY, Touches.OTHER),
}


def with_priors(distance: float, trials: int, seed: int) -> list[dict[str, object]]:
    """Print and return the runs of searches over 64 commits with right and wrong priors."""
    rows: list[dict[str, object]] = []
    for name, (kinds, bad_kind) in PRIORS.items():
        source = random.Random(f"{seed}/prior/{distance}/{name}")
        several = []
        for _ in range(trials):
            touched = source.sample(kinds, len(kinds))
            change = source.choice([place for place, kind in enumerate(touched, 1) if kind is bad_kind])
            several.append(_search(source, change, distance, (1.0, *prior_probabilities(touched))))
        runs, right, claimed = (fmean(float(trial[number]) for trial in several) for number in (0, 1, 2))
        rows.append(
            {"kind": "prior", "size": distance, "rule": name, "runs": runs, "right": right, "claimed": claimed}
        )
        print(f"| {distance:g} | {name} | {runs:.1f} | {right:.3f} | {claimed:.3f} |", flush=True)
    return rows


def _search(source: random.Random, change: int, distance: float, weights: tuple[float, ...]) -> Trial:
    later = len(weights) - 1
    noise = Noise(stdev(source.gauss(0.0, 1.0) for _ in range(EARLIER)), EARLIER)

    def run(version: int) -> float:
        return source.gauss(distance if version >= change else 0.0, 1.0)

    ends = {0: [run(0), run(0)], later: [run(later), run(later)]}
    search = Search(later + 1, lambda measured, versions: log_levels(measured, versions, noise), weights)
    return found(search, ends, run, change)


def at_once(distance: float, count: int, trials: int, seed: int) -> dict[str, object]:
    """Print and return rounds and runs of searches over 64 commits with several runs per round."""
    source = random.Random(f"{seed}/parallel/{distance}/{count}")
    rounds, runs, right = [], [], []
    for _ in range(trials):
        change, later = source.randint(1, 64), 64
        noise = Noise(stdev(source.gauss(0.0, 1.0) for _ in range(EARLIER)), EARLIER)
        levels = (0.0, distance)
        measured = {end: [source.gauss(levels[end > 0], 1.0) for _ in range(2)] for end in (0, later)}
        search = Search(
            later + 1,
            lambda values, versions, noise=noise: log_levels(values, versions, noise),
            error=error_of_levels,
        )
        done = started = 0
        while not (assessment := search.assess(measured, count=count)).certain and done < LIMIT:
            for version in assessment.next:
                measured.setdefault(version, []).append(source.gauss(levels[version >= change], 1.0))
            done, started = done + 1, started + len(assessment.next)
        rounds.append(done)
        runs.append(started)
        right.append(assessment.best.versions == (change,))
    row = {"kind": "parallel", "size": distance, "parallel": count}
    row |= {"rounds": fmean(rounds), "runs": fmean(runs), "right": fmean(right)}
    line = f"| {distance:g} | {count} | {row['rounds']:.1f} | {row['runs']:.1f} | {row['right']:.3f} |"
    print(line, flush=True)
    return row


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
    parser.add_argument("--only", default="", help="only rules whose name contains this")
    wanted = parser.parse_args()
    print(_head("shift / noise"))
    rows = table("level", [(32, 3.0), (64, 3.0), (64, 5.0), (128, 2.0)], wanted.trials, wanted.seed)
    print()
    print(_head("share of failures"))
    rows += table("failure", [(64, 1.0), (64, 0.9), (64, 0.5)], wanted.trials, wanted.seed)
    print("\n| shift / noise | prior | runs | right | claimed |\n|---|---|---|---|---|")
    rows += [row for distance in (3.0, 5.0) for row in with_priors(distance, wanted.trials, wanted.seed)]
    print("\n| shift / noise | at the same time | rounds | runs | right |\n|---|---|---|---|---|")
    rows += [
        at_once(distance, count, wanted.trials, wanted.seed) for distance in (3.0, 5.0) for count in (1, 2, 4)
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"trials": wanted.trials, "seed": wanted.seed, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
