"""Bisection in noise: tipcflow's search beside `git bisect` with 1, 3 and 5 runs per commit.

Also: searches with right and wrong priors, and with several runs at the same time.

Simulated: one of N commits changes the level by D standard deviations of a run. The bound is log2(N) / C, with the
capacity C of the channel, bits per run: a binary-input Gaussian channel; no rule needs fewer runs on average.
Failures: one of N commits makes a share of the runs fail, and the channel is a Z-channel.

Both ends are measured by the rule of `tipcflow bisect` before the search, after 10 earlier accepted runs, unless
the row says otherwise. Their runs are a column of their own: the bound does not count them. Searches whose ends do
not differ are refused, as by the command.

Prints tables and writes benchmarks/results/bisection.json.
"""

import argparse
import json
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from tipcflow.bisect import (
    Levels,
    Noise,
    Search,
    Touches,
    error_of_levels,
    failure_outcomes,
    level_outcomes,
    log_failures,
    log_levels,
    prior_probabilities,
)
from tipcflow.bisect.likelihood import log_known
from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.ends import ends_to_measure
from tipcflow.execute.bisection.measured import Measured
from tipcflow.execute.bisection.subject import FAILURE, Subject

RESULTS = Path(__file__).with_name("results") / "bisection.json"
EARLIER, LIMIT = 10, 400
# Level of the good version: negative, so that values are not scaled to logarithms.
GOOD = -1000.0
Run = Callable[[int], float]


@dataclass(frozen=True)
class Trial:
    """A search: runs after those of the ends, whether the result is right, its probability, runs of the ends."""

    runs: int
    right: bool
    claimed: float
    ends: int = 0


def capacity(distance: float, samples: int = 40_000) -> float:
    """Bits per run of levels `distance` standard deviations apart."""
    source = random.Random(1)
    lost = fmean(math.log2(1 + math.exp(-distance * source.gauss(distance / 2, 1.0))) for _ in range(samples))
    return 1 - lost


def capacity_of_failures(share: float) -> float:
    """Bits per run of a Z-channel: a bad version works with the probability 1 - share."""
    works = 1 - share
    return math.log2(1 + share * works ** (works / share)) if works else 1.0


def measured_ends(run: Run, commits: int, earlier: list[float], name: str = "batch_cost") -> Measured | None:
    """The measurements of the ends before the search; None if they do not differ."""
    versions = tuple(Commit(str(number), "") for number in range(commits + 1))
    subject, measured = Subject("s/m/f", "mode", "spec", name), Measured(noise_values=earlier)
    try:
        while places := ends_to_measure(measured, subject, versions, []):
            measured.values.setdefault(places[0], []).append(run(places[0]))
    except ConfigError:
        return None
    return measured


def found(search: Search, measured: dict[int, list[float]], run: Run, change: int) -> Trial:
    """Search to the end."""
    ends = sum(map(len, measured.values()))
    runs = 0
    while not (assessment := search.assess(measured)).certain and runs < LIMIT:
        (version,) = assessment.next
        measured.setdefault(version, []).append(run(version))
        runs += 1
    return Trial(runs, assessment.best.versions == (change,), assessment.best.probability, ends)


def search_of(versions: int, noise: Noise, weights: tuple[float, ...] = ()) -> Search:
    """The search of `tipcflow bisect` for a metric."""
    return Search(
        versions,
        lambda measured, places: log_levels(measured, places, noise),
        weights,
        error=error_of_levels,
        outcomes=lambda measured, posterior, place: level_outcomes(measured, posterior, place, noise),
    )


def of_levels(source: random.Random, commits: int, distance: float, how: str) -> Trial | None:
    """One search for a change of the level."""
    change = source.randint(1, commits)

    def run(version: int) -> float:
        return source.gauss(GOOD + (distance if version >= change else 0.0), 1.0)

    if how.startswith("git"):
        tries, middle = int(how[-1]), GOOD + distance / 2
        return plain(commits, change, lambda version: fmean(run(version) for _ in range(tries)) > middle, tries)
    if how == "known noise":
        levels = Levels(GOOD, GOOD + distance, 1.0)
        search = Search(commits + 1, lambda measured, versions: log_known(measured, versions, levels))
        return found(search, {0: [GOOD], commits: [GOOD + distance]}, run, change)
    earlier = [source.gauss(GOOD, 1.0) for _ in range(EARLIER if how == "unknown noise" else 0)]
    ends = measured_ends(run, commits, earlier)
    if ends is None:
        return None
    values, noise = ends.scaled(is_failure=False)
    return found(search_of(commits + 1, noise), dict(values), run, change)


def of_failures(source: random.Random, commits: int, share: float, how: str) -> Trial | None:
    """One search for a failure."""
    change = source.randint(1, commits)

    def run(version: int) -> float:
        return float(version >= change and source.random() < share)

    if how.startswith("git"):
        tries = int(how[-1])
        return plain(commits, change, lambda version: any(run(version) for _ in range(tries)), tries)
    ends = measured_ends(run, commits, [], FAILURE)
    if ends is None:
        return None
    return found(Search(commits + 1, log_failures, outcomes=failure_outcomes), ends.values, run, change)


def plain(commits: int, change: int, is_bad: Callable[[int], bool], each: int) -> Trial:
    """`git bisect`: trusts each result."""
    good, bad, runs = 0, commits, 0
    while bad - good > 1:
        middle = (good + bad) // 2
        runs += each
        good, bad = (good, middle) if is_bad(middle) else (middle, bad)
    return Trial(runs, bad == change, math.nan)


def summary(trials: Iterable[Trial | None]) -> dict[str, float | None]:
    """The columns of several trials."""
    every = list(trials)
    done = [trial for trial in every if trial is not None]
    claimed = fmean(trial.claimed for trial in done)
    return {
        "runs": fmean(trial.runs for trial in done),
        "runs_error": stdev(trial.runs for trial in done) / math.sqrt(len(done)),
        "right": fmean(trial.right for trial in done),
        "claimed": None if math.isnan(claimed) else claimed,
        "ends": fmean(trial.ends for trial in done),
        "refused": 1 - len(done) / len(every),
        "trials": len(every),
    }


HOWS = ("known noise", "unknown noise", "no earlier runs", "git bisect x 1", "git bisect x 3", "git bisect x 5")


def table(kind: str, cases: list[tuple[int, float]], trials: int, seed: int, only: str) -> list[dict[str, object]]:
    """Print and return the rows of one kind."""
    rows: list[dict[str, object]] = []
    for commits, size in cases:
        bits = capacity(size) if kind == "level" else capacity_of_failures(size)
        for how in HOWS if kind == "level" else ("tipcflow", *HOWS[3:]):
            if only not in how:
                continue
            source = random.Random(f"{seed}/{kind}/{commits}/{size}/{how}")
            one = of_levels if kind == "level" else of_failures
            columns = summary(one(source, commits, size, how) for _ in range(trials))
            row = {"kind": kind, "commits": commits, "size": size, "rule": how, "bound": math.log2(commits) / bits}
            rows.append(row | columns)
            print(_line(rows[-1]), flush=True)
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
            several.append(_with_prior(source, change, distance, (1.0, *prior_probabilities(touched))))
        row = summary(several)
        rows.append({"kind": "prior", "size": distance, "rule": name, **row})
        print(
            f"| {distance:g} | {name} | {row['runs']:.1f} | {row['right']:.3f} | {row['claimed']:.3f} |",
            flush=True,
        )
    return rows


def _with_prior(source: random.Random, change: int, distance: float, weights: tuple[float, ...]) -> Trial | None:
    later = len(weights) - 1

    def run(version: int) -> float:
        return source.gauss(GOOD + (distance if version >= change else 0.0), 1.0)

    ends = measured_ends(run, later, [source.gauss(GOOD, 1.0) for _ in range(EARLIER)])
    if ends is None:
        return None
    values, noise = ends.scaled(is_failure=False)
    return found(search_of(later + 1, noise, weights), dict(values), run, change)


def at_once(distance: float, count: int, trials: int, seed: int) -> dict[str, object]:
    """Print and return rounds and runs of searches over 64 commits with several runs per round."""
    source = random.Random(f"{seed}/parallel/{distance}/{count}")
    rounds, runs, right = [], [], []
    for _ in range(trials):
        change, later = source.randint(1, 64), 64

        def run(version: int, change: int = change) -> float:
            return source.gauss(GOOD + (distance if version >= change else 0.0), 1.0)

        ends = measured_ends(run, later, [source.gauss(GOOD, 1.0) for _ in range(EARLIER)])
        if ends is None:
            continue
        values, noise = ends.scaled(is_failure=False)
        measured, search = dict(values), search_of(later + 1, noise)
        done = started = 0
        while not (assessment := search.assess(measured, count=count)).certain and done < LIMIT:
            for version in assessment.next:
                measured.setdefault(version, []).append(run(version))
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
    names = ("commits", size, "rule", "bound", "runs", "ratio", "right", "claimed", "ends")
    return f"| {' | '.join(names)} |\n{'|---' * len(names)}|"


def _line(row: dict[str, object]) -> str:
    claimed = "-" if row["claimed"] is None else f"{row['claimed']:.3f}"
    ends = f"{row['ends']:.1f}" if row["ends"] else "-"
    refused = f", {row['refused']:.0%} refused" if row["refused"] else ""
    ratio = f"{row['runs'] / row['bound']:.2f} ± {row['runs_error'] / row['bound']:.2f}"
    figures = (
        f"{row['bound']:.1f} | {row['runs']:.1f} | {ratio} | {row['right']:.3f} | {claimed} | {ends}{refused}"
    )
    return f"| {row['commits']} | {row['size']:g} | {row['rule']} | {figures} |"


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--only", default="", help="only rules whose name contains this, and nothing is written")
    wanted = parser.parse_args()
    print(_head("shift / noise"))
    cases = [(32, 3.0), (64, 3.0), (64, 5.0), (128, 2.0)]
    rows = table("level", cases, wanted.trials, wanted.seed, wanted.only)
    print()
    print(_head("share of failures"))
    cases = [(64, 1.0), (64, 0.9), (64, 0.5), (64, 0.2)]
    rows += table("failure", cases, wanted.trials, wanted.seed, wanted.only)
    if wanted.only:
        return
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
