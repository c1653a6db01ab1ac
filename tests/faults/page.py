"""The tables of random cases: counts by class, and one row per fault, in docs/random-faults.md."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.support.faults.report import alone, commit

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "random-faults.md"
RESULTS = Path(__file__).with_name("seen.json")
KINDS = (
    "false pass",
    "wrong verdict",
    "node not named",
    "doubled or lost",
    "left behind",
    "traceback",
    "exit code",
    "next run",
    "injector",
)
HEAD = """# Random faults

`python tests/faults/random.py --cases N --seed S` draws one fault (12 %: two at once), a node, a rank and a moment
for each case, runs the toy suite on two local nodes with a real `sshd`, and compares the verdict, the exit code,
the processes and leases that are left, and every printed loss with what is right for that fault. Waits are shorter
than shipped (reconnect 10 s, lease 6 s, silence 4 s, node lease 10 s, hang 6 s). `--write` writes this page.
"""


def classes(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many cases are right, and how many have each kind of defect."""
    counted = Counter(kind for row in rows for kind in row["wrong"])
    right = sum(not row["wrong"] for row in rows)
    missed = sum(not row["seen"].get("struck", True) for row in rows)
    return {"right": right, **{kind: counted[kind] for kind in KINDS}, "without effect": missed}


def write(rows: list[dict[str, Any]], seed: int, door: str) -> None:
    """Keep the results of a front door and write the page from those of both."""
    with alone():
        known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        known[door] = {"seed": seed, "commit": commit(), "classes": classes(rows), "faults": by_fault(rows)}
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        PAGE.write_text(page(known))


def by_fault(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Fault -> how many cases had it, what they ended with, and what was wrong."""
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"cases": 0, "ended": Counter(), "wrong": []})
    for row in rows:
        for name in row["name"].split(" + "):
            one = found[name]
            one["cases"] += 1
            one["ended"][row["seen"]["status"]] += 1
            one["wrong"] += [f"case {row['number']}: {kind}: {text}"[:200] for kind, text in row["wrong"].items()]
    return {name: {**one, "ended": dict(one["ended"])} for name, one in sorted(found.items())}


def page(known: dict[str, Any]) -> str:
    """docs/random-faults.md."""
    parts = [HEAD]
    for door, said in sorted(known.items()):
        title = "`tipcflow run`" if door == "cli" else "Airflow"
        cases = sum(said["classes"].get(kind, 0) for kind in ("right",))
        parts.append(f"\n## {title}\n\nSeed {said['seed']}, commit {said['commit']}; {cases} cases right.\n\n")
        parts.append("| class | cases |\n|---|---|\n")
        parts += [f"| {kind} | {count} |\n" for kind, count in said["classes"].items()]
        parts.append("\n| fault | cases | ended as | wrong |\n|---|---|---|---|\n")
        for name, one in said["faults"].items():
            ended = ", ".join(f"{count} `{status}`" for status, count in sorted(one["ended"].items()))
            wrong = "; ".join(one["wrong"]).replace("|", "/").replace("\n", " ") or "–"
            parts.append(f"| {name} | {one['cases']} | {ended} | {wrong} |\n")
    return "".join(parts)
