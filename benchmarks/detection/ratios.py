"""Delays and numbers of runs of rules on simulated series, as multiples of what theory permits.

    python benchmarks/detection/ratios.py [--count 100] [--otava PYTHON]

Series of `run.py` with normal noise and one step; `optimum` has the two bounds. A rule's delay is the mean number
of points until the first alert in the direction of the step, 1 at the first; a step that is not found counts with
all points after it, so that the delay is a lower bound then. Runs are the points until the alert and the confirm
runs of the detector among them. Prints a table with standard errors and writes benchmarks/results/ratios.json.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import optimum
from generate import SETTINGS, Case, Setting, cases
from rules import RULES
from run import SEED, otava

from tipcflow.check.detect import Gate
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import DetectRule, Policy

ROOT = Path(__file__).resolve().parents[2]
STEPS = (0.02, 0.03, 0.05)
POINTS = 130
FALSE_PER_YEAR = 0.01
OTHERS = ("Perfherder t 7", "PaddleTest 5 %")
# Variance of the median of five samples over that of one.
_MEDIAN = 0.287


@dataclass(frozen=True)
class Trial:
    """One step: points until the alert, runs among them, and whether there was one."""

    points: int
    runs: int
    found: bool


Rule = Callable[[Case], Trial]


def detector(rule: DetectRule, *, confirm: bool) -> Rule:
    """tipcflow's detector, run by run."""

    def judge(case: Case) -> Trial:
        assert case.step_at is not None
        gate, before = Gate(case.series.higher_is_better, rule), 0
        for index, point in enumerate(case.series.points):
            assert point.value is not None
            before = gate.requests if index == case.step_at else before
            second = point.confirm if confirm else None
            alert = gate.judge(index, point.value, lambda second=second: second)
            if alert is not None and index >= case.step_at and alert.direction == "worse":
                points = index - case.step_at + 1
                return Trial(points, points + gate.requests - before, True)
        points = len(case.series.points) - case.step_at
        return Trial(points, points + gate.requests - before, False)

    return judge


def of_alerts(judge: Callable[[Any], list[tuple[int, float]]]) -> Rule:
    """A rule that returns (index, relative change) of each alert."""

    def trial(case: Case) -> Trial:
        assert case.step_at is not None
        worse = -1 if case.series.higher_is_better else 1
        at = [index for index, size in judge(case.series) if size * worse > 0 and index >= case.step_at]
        points = (at[0] + 1 if at else len(case.series.points)) - case.step_at
        return Trial(points, points, bool(at))

    return trial


def rows(rules: dict[str, Rule], setting: Setting, step: float, count: int) -> Iterator[dict[str, Any]]:
    """The figures of each rule on the same series."""
    made = list(cases(setting, step=step, count=count, seed=SEED, points=POINTS))
    times = step / math.sqrt(setting.between**2 + _MEDIAN * setting.within**2)
    least = optimum.delay(times, FALSE_PER_YEAR), optimum.runs(times, FALSE_PER_YEAR)
    for name, rule in rules.items():
        trials = [rule(case) for case in made]
        row = {
            "setting": setting.name,
            "step": step,
            "rule": name,
            "n": count,
            "optimum": least[0],
            "wald": least[1],
        }
        row["found"] = fmean(trial.found for trial in trials)
        for key, values in (("delay", [one.points for one in trials]), ("runs", [one.runs for one in trials])):
            row |= {key: fmean(values), f"{key}_error": stdev(values) / math.sqrt(count)}
        yield row


def line(row: dict[str, Any]) -> str:
    """A row of the Markdown table."""
    delay, error = row["delay"] / row["optimum"], row["delay_error"] / row["optimum"]
    runs, runs_error = row["runs"] / row["wald"], row["runs_error"] / row["wald"]
    wald = f"{runs:.2f} ± {runs_error:.2f}" if row["rule"] == "detector" else "-"
    cells = f"{row['rule']} | {row['found']:.2f} | {row['delay']:.1f} | {delay:.2f} ± {error:.2f} | {wald}"
    return f"| {row['setting']} | {row['step']:.0%} | {row['optimum']:.2f} | {row['wald']:.2f} | {cells} |"


def main() -> None:
    """Print the table and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="series per cell")
    parser.add_argument("--policy", default="weekly")
    parser.add_argument("--otava", default="", help="Python of an environment with apache-otava")
    given = parser.parse_args()
    rule = load_yaml(ROOT / "configs" / "policies" / f"{given.policy}.yaml", Policy).detect
    rules = {"detector, no confirm run": detector(rule, confirm=False), "detector": detector(rule, confirm=True)}
    rules |= {name: of_alerts(RULES[name]) for name in OTHERS}
    if given.otava:
        rules["Otava"] = of_alerts(lambda series: otava(given.otava)([series])[0])
    names = ("noise", "step", "optimum", "Wald", "rule", "found", "delay", "delay / optimum", "runs / Wald")
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")
    found = []
    for setting in SETTINGS[:3]:
        for step in STEPS:
            for row in rows(rules, setting, step, given.count):
                found.append(row)
                print(line(row), flush=True)
    target = ROOT / "benchmarks" / "results" / "ratios.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"seed": SEED, "false_per_year": FALSE_PER_YEAR, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
