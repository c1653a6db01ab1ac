"""Results of a run's checks on simulated series, through the function behind `tipcflow judge --series`.

    python benchmarks/detection/product.py [--count 12] [--steps 24] [--seed 20261122]

Series without a change have 104 runs; stepped ones end at their first slower run, from the sixth on. Noise
is normal, 0 (exact ties) to 3 %; limit = max(floor, z x noise) of the shipped policy. A confirmed change is one
that the run and all confirm runs that its policy wants measure as at least 1.1 x limit. Writes
benchmarks/results/product.json and the section of docs/measured-gate.md between its two markers. One series is
also passed to the command itself.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tipcflow.check.baseline.run_by_run import JudgedPoint, judge_run_by_run, number_name
from tipcflow.check.detect import Point, Series
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.domain import Status

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "docs" / "measured-gate.md"
BEGIN, END = "<!-- product.py: begin -->", "<!-- product.py: end -->"
METRICS = ("batch_cost", "peak_rss", "loss")
NOISES = (0.0, 0.003, 0.01, 0.03)
TIMES = (1.1, 1.3, 1.8, 3.0)
CONFIRMED, FIRST, LAST, RUNS, WEEKS = 1.1, 5, 30, 104, 52
# Further confirm runs of a point.
MORE = 2
GREEN = (Status.PASS, Status.IMPROVEMENT, Status.INSUFFICIENT_DATA)


def series(source: random.Random, noise: float, runs: int, *, step: float = 0.0, confirm: bool = True) -> Series:
    """A series whose last run is `step` slower than the others."""
    points = []
    for at in range(runs):
        level = 0.2 * (1 + step * (at == runs - 1))
        value, second = (level * (1 + source.gauss(0, noise)) for _ in range(2))
        # Of its own source, so that the other values do not depend on the number of confirm runs.
        further = random.Random(repr(second))
        more = tuple(level * (1 + further.gauss(0, noise)) for _ in range(MORE))
        points.append(Point(f"r{at}", "n", value, second, more) if confirm else Point(f"r{at}", "n", value))
    return Series("s", "s", False, tuple(points))


def honest(
    source: random.Random, policy: Policy, name: str, noise: float, count: int, confirm: bool
) -> Counter[str]:
    """Frequency of each status in series without a change."""
    found: Counter[str] = Counter()
    for _ in range(count):
        made = series(source, noise, RUNS, confirm=confirm)
        found.update(one.status.value for one in judge_run_by_run(made, name, policy))
    return found


def stepped(
    source: random.Random, policy: Policy, name: str, noise: float, step: float, limit: float, count: int
) -> Counter[str]:
    """Status of the first slower run, with and without a confirmation sample."""
    found: Counter[str] = Counter()
    for number in range(count):
        made = series(source, noise, source.randint(FIRST, LAST) + 1, step=step)
        last = made.points[-1]
        assert last.value is not None
        assert last.confirm is not None
        confirms = (last.confirm, *last.more)[: policy.confirm_runs]
        measured = (min(last.value, *confirms) if number % 2 else last.value) / 0.2 - 1
        if number % 2 == 0:
            made = Series(made.id, made.unit, False, (*made.points[:-1], last._replace(confirm=None, more=())))
        result = list(judge_run_by_run(made, name, policy))[-1].status
        kind = "with" if number % 2 else "without"
        found[f"{kind}: all"] += 1
        found[f"{kind}: {'green' if result in GREEN else result.value}"] += 1
        # 1e-9: without noise, 1.1 x limit is below it by a rounding error.
        if measured >= CONFIRMED * limit - 1e-9:
            found[f"{kind}: beyond"] += 1
            found[f"{kind}: beyond, {'green' if result in GREEN else result.value}"] += 1
    return found


def rows(count: int, steps: int, seed: int) -> Iterator[dict[str, Any]]:
    """One row per policy, metric and noise."""
    for policy_name in ("pr", "weekly"):
        policy = load_yaml(ROOT / "configs" / "policies" / f"{policy_name}.yaml", Policy)
        for metric in METRICS:
            name = number_name(metric, policy)
            for noise in NOISES:
                source = random.Random(f"{seed} {policy_name} {metric} {noise}")
                floor = policy.floor_of(name)
                limit = max(floor, policy.z * noise)
                with_, without = (honest(source, policy, name, noise, count, known) for known in (True, False))
                found = [stepped(source, policy, name, noise, one * limit, limit, steps) for one in TIMES]
                yield {
                    "policy": policy_name,
                    "metric": metric,
                    "floor": floor,
                    "z": policy.z,
                    "noise": noise,
                    "limit": limit,
                    "years": count * RUNS / WEEKS,
                    "honest": dict(with_),
                    "honest_without_confirm": dict(without),
                    "steps": {str(one): dict(what) for one, what in zip(TIMES, found, strict=True)},
                }


def table(found: list[dict[str, Any]]) -> list[str]:
    """The rows as Markdown."""
    head = "| policy, metric | floor | noise | limit | false regressions per year (no confirmation) "
    head += "| unconfirmed per year (no confirmation) | found at once: " + ", ".join(f"{one} x" for one in TIMES)
    lines = [head + " | confirmed changes found at once | suspected, not confirmed: green |", "|---" * 9 + "|"]
    for row in [*found, *_together(found)]:
        years, steps = row["years"], list(row["steps"].values())
        rates = [
            f"{row[key].get(status, 0) / years:.3f}"
            for status in ("regression", "unconfirmed")
            for key in ("honest", "honest_without_confirm")
        ]
        once = ", ".join(_share(one, "with: regression", "with: all") for one in steps)
        whole: Counter[str] = Counter()
        for one in steps:
            whole.update(one)
        one_row = bool(row["floor"])
        what = f"{row['policy']}, {row['metric']} | {row['floor']:.0%}" if one_row else f"**{row['policy']}** | "
        noise = f"{row['noise']:.1%} | {row['limit']:.1%}" if one_row else " | "
        lines.append(
            f"| {what} | {noise} | {rates[0]} ({rates[1]}) | {rates[2]} ({rates[3]}) | {once} | "
            f"{_share(whole, 'with: beyond, regression', 'with: beyond')} of {whole['with: beyond']} | "
            f"{whole['without: beyond, green']} of {whole['without: beyond']} |"
        )
    return lines


def _share(found: dict[str, int], part: str, whole: str) -> str:
    return f"{found.get(part, 0) / found[whole]:.2f}" if found.get(whole) else "-"


def _together(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Totals of rows whose limit is the floor, and of rows whose limit is the noise."""
    quiet = [one for one in found if one["floor"] >= 2 * one["z"] * one["noise"]]
    noisy = [one for one in found if one not in quiet]
    for name, chosen in (("floor at least twice z x noise", quiet), ("more noise", noisy), ("all", found)):
        total: dict[str, Any] = {"policy": name, "floor": 0.0, "years": sum(one["years"] for one in chosen)}
        for key in ("honest", "honest_without_confirm"):
            total[key] = sum((Counter(one[key]) for one in chosen), Counter())
        total["steps"] = {
            str(times): sum((Counter(one["steps"][str(times)]) for one in chosen), Counter()) for times in TIMES
        }
        yield total


def by_process(seed: int) -> bool:
    """Whether the command and the function return the same result for a series."""
    policy = load_yaml(ROOT / "configs" / "policies" / "weekly.yaml", Policy)
    drawn = series(random.Random(seed), 0.01, 40, step=0.09)
    # The command's file has one confirm run per point.
    made = Series(drawn.id, drawn.unit, False, tuple(point._replace(more=()) for point in drawn.points))
    points = [
        {"run": one.run, "node": one.node, "samples": [one.value], "confirm": [one.confirm]} for one in made.points
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(json.dumps({"id": "s", "unit": "s", "direction": "lower", "points": points}) + "\n")
        file.flush()
        command = [Path(sys.executable).with_name("tipcflow"), "judge", "--series", file.name]
        more = ["--policy", "weekly", "--metric", "batch_cost", "--json"]
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
    report = [(one["status"], one["reason"]) for one in json.loads(done.stdout)["points"]]
    ours: list[JudgedPoint] = list(judge_run_by_run(made, "batch_cost", policy))
    return report == [(one.status.value, one.reason) for one in ours]


def main() -> None:
    """Evaluate all series, print the table, write the file and the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=12, help="series per row without a change")
    parser.add_argument("--steps", type=int, default=24, help="stepped series per row and size, half confirmed")
    parser.add_argument("--seed", type=int, default=20261122)
    given = parser.parse_args()
    begin = time.process_time()
    found = list(rows(given.count, given.steps, given.seed))
    same = by_process(given.seed)
    seconds = round(time.process_time() - begin)
    lines = table(found)
    about = (
        f"`python benchmarks/detection/product.py --count {given.count} --steps {given.steps} "
        f"--seed {given.seed}`; "
        f"{seconds} s of CPU time. Per row: {given.count}\n"
        f"series of {RUNS} runs without a change, with and without confirm runs each, and {given.steps}\n"
        f"series per step size. `tipcflow judge --series` and the function agree: {'yes' if same else 'NO'}."
    )
    print("\n".join([about, "", *lines]))
    out = ROOT / "benchmarks" / "results" / "product.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"seed": given.seed, "same_by_process": same, "rows": found}) + "\n")
    text = DOC.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOC.write_text(f"{before}{BEGIN}\n{about}\n\n" + "\n".join(lines) + f"\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
