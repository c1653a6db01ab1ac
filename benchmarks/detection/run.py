"""False alerts, and steps found, of the gate and of rules in use elsewhere, on the same simulated series.

    python benchmarks/detection/run.py [--count 200] [--otava PYTHON --otava-count 40]

`--otava` names the Python of an environment that has apache-otava; it costs 0.2 s a series, so it judges the first
`--otava-count` series of each cell. Prints a table and writes benchmarks/results/detection.json. Thresholds were
chosen on seeds 1 to 9; the table is made with another.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from generate import POINTS, SETTINGS, Case, Setting, cases
from rules import RULES

from tipcflow.check.detect import Series, judge_series
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy

ROOT = Path(__file__).resolve().parents[2]
SEED = 20261
STEPS = (0.01, 0.02, 0.03, 0.05)
WITHIN = 12
WEEKS = 52

Judge = Callable[[Sequence[Series]], list[list[tuple[int, float]]]]


def gate(policy: str, *, confirm: bool = True) -> Judge:
    """Our gate under a shipped policy; without confirm runs, as where nobody can make any."""
    rule = load_yaml(ROOT / "configs" / "policies" / f"{policy}.yaml", Policy).detect

    def judge(series: Sequence[Series]) -> list[list[tuple[int, float]]]:
        given = series if confirm else [_unconfirmed(one) for one in series]
        return [[(alert.index, alert.size) for alert in alerts] for alerts in judge_series(given, rule)]

    return judge


def _unconfirmed(series: Series) -> Series:
    return replace(series, points=tuple(point._replace(confirm=None) for point in series.points))


def otava(python: str) -> Judge:
    """Apache Otava in its own environment."""
    worker = Path(__file__).with_name("otava_worker.py")

    def judge(series: Sequence[Series]) -> list[list[tuple[int, float]]]:
        text = "".join(json.dumps([point.value for point in one.points]) + "\n" for one in series)
        done = subprocess.run([python, str(worker)], input=text, capture_output=True, text=True, check=True)
        return [[(index, size) for index, size in json.loads(line)] for line in done.stdout.splitlines()]

    return judge


def cell(judge: Judge, setting: Setting, step: float, count: int, seed: int) -> dict[str, Any]:
    """What a rule did on `count` series of one setting and step."""
    made = list(cases(setting, step=step, count=count, seed=seed))
    answers = judge([case.series for case in made])
    if not step:
        return {"false_per_year": sum(map(len, answers)) / (count * POINTS / WEEKS), "series": count}
    delays = [
        delay for case, raised in zip(made, answers, strict=True) if (delay := _delay(case, raised)) is not None
    ]
    return {
        "series": count,
        "found": len(delays) / count,
        "first": delays.count(0) / count,
        "median_delay": median(delays) if delays else None,
    }


def _delay(case: Case, raised: list[tuple[int, float]]) -> int | None:
    """Runs from the step to the first alert to its side; None when it was not found in time."""
    assert case.step_at is not None
    worse = -1 if case.series.higher_is_better else 1
    delays = [index - case.step_at for index, size in raised if size * worse > 0 and index >= case.step_at]
    return delays[0] if delays and delays[0] < WITHIN else None


def main() -> None:
    """Judge everything, print the table, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="series a cell")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--otava", default="", help="Python of an environment with apache-otava")
    parser.add_argument("--otava-count", type=int, default=40, help="series a cell for Otava")
    parser.add_argument("--only", default="", help="only rules whose name has this in it")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "detection.json")
    given = parser.parse_args()
    judges: dict[str, tuple[Judge, int]] = {
        "gate, weekly": (gate("weekly"), given.count),
        "gate, pr": (gate("pr"), given.count),
        "gate, pr, no confirm runs": (gate("pr", confirm=False), given.count),
    }
    judges |= {name: (_each(rule), given.count) for name, rule in RULES.items()}
    if given.otava:
        judges["Otava"] = (otava(given.otava), min(given.otava_count, given.count))
    if given.only:
        judges = {name: judge for name, judge in judges.items() if given.only in name}
    results: dict[str, dict[str, Any]] = {}
    for setting in SETTINGS:
        print(f"\n{setting.name}\n{'':28}false/year " + "".join(f"{step:>19.0%}" for step in STEPS))
        for name, (judge, count) in judges.items():
            row = {"0": cell(judge, setting, 0.0, count, given.seed)}
            row |= {str(step): cell(judge, setting, step, count, given.seed) for step in STEPS}
            results.setdefault(setting.name, {})[name] = row
            shown = "".join(_shown(row[str(step)]) for step in STEPS)
            print(f"{name:28}{row['0']['false_per_year']:10.3f} {shown}", flush=True)
    given.out.write_text(
        json.dumps({"seed": given.seed, "load": os.getloadavg()[0], "results": results}, indent=1) + "\n"
    )


def _each(rule: Callable[[Series], list[tuple[int, float]]]) -> Judge:
    return lambda series: [rule(one) for one in series]


def _shown(found: dict[str, Any]) -> str:
    delay = "-" if found["median_delay"] is None else f"{found['median_delay']:g}"
    return f"{found['found']:9.3f}{found['first']:6.2f}{delay:>4}"


if __name__ == "__main__":
    sys.exit(main())
