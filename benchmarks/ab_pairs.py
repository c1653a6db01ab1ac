"""A/B comparisons in noise: `tipcflow ab` beside what users do by hand.

Simulated: a run's metric is its level times noise (standard deviation per run), times a slow drift of the node, a
random walk whose steps have the given share of that noise. Rules:

- ab: the interval of `tipcflow ab` after each pair, ABBA, until decided, at most 20 pairs;
- 5 + 5: five runs of A, then five of B; B is worse or better if the means differ by more than 2 %, else the same;
- 20 + 20: the same with 20 runs each;
- t-test: pairs as for ab, a plain paired t-test (p < 0.02) after each pair from the fourth on; stops at the first
  significant difference, and is undecided after 20 pairs.

*wrong*: share of trials with a false outcome: worse or better where B is equal, same or better where it is slower
by more than the margin. Prints a table and writes benchmarks/results/ab_pairs.json.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from tipcflow.ab import Outcome, least_pairs, outcome_of, ratio_of

RESULTS = Path(__file__).with_name("results") / "ab_pairs.json"
ERROR, MARGIN, MOST = 0.02, 0.02, 20
# Two-sided 2 % quantiles of Student's t for 3 … 19 degrees of freedom.
QUANTILES = (
    *(4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.718),
    *(2.681, 2.650, 2.624, 2.602, 2.583, 2.567, 2.552, 2.539),
)
Trial = tuple[int, Outcome]


class Node:
    """A node that drifts: runs of A and B on it, one after the other."""

    def __init__(self, source: random.Random, ratio: float, noise: float, drift: float) -> None:
        self._source, self._noise, self._step = source, noise, noise * drift
        self._levels = {"A": 0.0, "B": math.log(ratio)}
        self._drift = 0.0

    def run(self, side: str) -> float:
        """Return the metric of the next run."""
        self._drift += self._source.gauss(0.0, self._step)
        return math.exp(self._levels[side] + self._drift + self._source.gauss(0.0, self._noise))

    def pairs(self) -> Iterator[tuple[float, float]]:
        """Yield (A, B) in ABBA order."""
        while True:
            a = self.run("A")
            b = self.run("B")
            yield a, b
            b = self.run("B")
            a = self.run("A")
            yield a, b


def by_ab(node: Node) -> Trial:
    """Return (runs, outcome) of `tipcflow ab`."""
    pairs: list[tuple[float, float]] = []
    for pair in node.pairs():
        pairs.append(pair)
        outcome = outcome_of(ratio_of(pairs, ERROR), "lower", MARGIN)
        if outcome is not Outcome.UNDECIDED or len(pairs) == MOST:
            return 2 * len(pairs), outcome
    raise AssertionError


def by_t_test(node: Node) -> Trial:
    """Return (runs, outcome) of a t-test that is repeated after each pair."""
    logs: list[float] = []
    for a, b in node.pairs():
        logs.append(math.log(b / a))
        count = len(logs)
        if count >= least_pairs(ERROR):
            half = QUANTILES[count - 4] * stdev(logs) / math.sqrt(count)
            mean = fmean(logs)
            if abs(mean) > half:
                return 2 * count, Outcome.WORSE if mean > 0 else Outcome.BETTER
            if math.expm1(mean + half) < MARGIN and mean - half > -math.log1p(MARGIN):
                return 2 * count, Outcome.SAME
        if count == MOST:
            return 2 * count, Outcome.UNDECIDED
    raise AssertionError


def by_means(node: Node, each: int) -> Trial:
    """Return (runs, outcome) of runs of A, then runs of B."""
    a = fmean(node.run("A") for _ in range(each))
    b = fmean(node.run("B") for _ in range(each))
    if abs(b / a - 1) <= MARGIN:
        return 2 * each, Outcome.SAME
    return 2 * each, Outcome.WORSE if b > a else Outcome.BETTER


def trial_of(rule: str, node: Node) -> Trial:
    """Return (runs, outcome) of one trial."""
    if rule == "ab":
        return by_ab(node)
    return by_t_test(node) if rule == "t-test" else by_means(node, int(rule.partition(" ")[0]))


def is_wrong(outcome: Outcome, ratio: float) -> bool:
    """Whether an outcome contradicts the true ratio (lower is better)."""
    if outcome is Outcome.UNDECIDED:
        return False
    if ratio == 1:
        return outcome is not Outcome.SAME
    return outcome is not Outcome.WORSE if ratio > 1 + MARGIN else outcome is Outcome.BETTER


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261123)
    wanted = parser.parse_args()
    rows = []
    names = ("B / A", "noise", "drift", "rule", "runs", "wrong", "undecided", "same", "worse")
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")
    for ratio, noise, drift in [
        *((1.0, 0.01, drift) for drift in (0.0, 0.5)),
        *((1.05, 0.01, drift) for drift in (0.0, 0.5)),
        (1.0, 0.03, 0.5),
        (1.05, 0.03, 0.5),
        (1.10, 0.03, 0.5),
        (1.0, 0.002, 0.5),
    ]:
        for rule in ("ab", "5 + 5", "20 + 20", "t-test"):
            source = random.Random(f"{wanted.seed}/{ratio}/{noise}/{drift}/{rule}")
            trials = [trial_of(rule, Node(source, ratio, noise, drift)) for _ in range(wanted.trials)]
            outcomes = [outcome for _, outcome in trials]
            row = {
                "ratio": ratio,
                "noise": noise,
                "drift": drift,
                "rule": rule,
                "runs": fmean(runs for runs, _ in trials),
                "wrong": fmean(is_wrong(outcome, ratio) for outcome in outcomes),
                **{each.value: outcomes.count(each) / len(outcomes) for each in Outcome},
            }
            rows.append(row)
            print(
                f"| {ratio:g} | {noise:.1%} | {drift:g} | {rule} | {row['runs']:.1f} | {row['wrong']:.3f} "
                f"| {row['undecided']:.3f} | {row['same']:.3f} | {row['worse']:.3f} |",
                flush=True,
            )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"trials": wanted.trials, "seed": wanted.seed, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
