"""The tables of random cases: counts by class, and one row per fault, in docs/random-faults.md."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.faults.catalogue import PADDLE
from tests.faults.oracle import UNSTARTED
from tests.support.faults.report import alone, commit

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "random-faults.md"
RESULTS = Path(__file__).with_name("seen.json")
KINDS = (
    "false pass",
    "wrong verdict",
    "wrong class",
    "node not named",
    "rank not named",
    "no status",
    "doubled or lost",
    "left behind",
    "fetched a secret",
    "traceback",
    "exit code",
    "next run",
    "injector",
)
TITLES = {
    "cli": "`tipcflow run`",
    "airflow": "Airflow",
    "cli-paddle": "`tipcflow run`, real Paddle",
    "airflow-paddle": "Airflow, real Paddle",
}
HEAD = """# Random faults

`python tests/faults/random.py --cases N --seed S` draws one fault (12 %: two at once), a node, a rank and a moment
for each case, runs the toy suite on two local nodes with a real `sshd`, and compares the result with the
expected one:

- the status, the exit code, and the [class](reference/failures.md) of every stored failure, also in the
  certificate;
- the node of the root cause, and for faults of the model's code the rank;
- every printed loss of every attempt, whether the run passed or not. A rank that was cut short may differ by its
  last line; a whole log may be missing only if its node was lost and the log could not be fetched;
- processes and leases that are left, tracebacks, and files that were fetched against the rules;
- the status that a run without one gets from `tipcflow runs`, and after `tipcflow nodes reap`.

A case whose fault came before there was a run, or after its end, is *without effect*. Waits are shorter than
shipped (reconnect 10 s, lease 6 s, silence 4 s, node lease 10 s, hang 6 s).

| option | what it changes |
|---|---|
| `--airflow` | each case is a DAG run in a real Airflow with PostgreSQL (node lease 90 s) |
| `--paddle` | real Paddle (CPU, gloo) trains a linear layer in a third of the cases (hang 40 s) |
| `--write` | this page is written, with a table for each front door, with and without Paddle |

With `--airflow` the catalogue has more faults: a killed component or worker, a closed metrics database, what
users do to a DAG run.

The named faults are in [faults.md](faults.md).
"""


def classes(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many cases are right, and how many have each kind of defect.

    A case without a run, or whose fault came too late, shows nothing about the fault: it is not right.
    """
    counted = Counter(kind for row in rows for kind in row["wrong"])
    missed = sum(_missed(row) for row in rows)
    right = sum(not row["wrong"] and not _missed(row) for row in rows)
    return {"right": right, **{kind: counted[kind] for kind in KINDS}, "without effect": missed}


def _missed(row: dict[str, Any]) -> bool:
    """Whether nothing was wrong, and the fault hit no run."""
    seen = row["seen"]
    return not row["wrong"] and (not seen.get("struck", True) or seen["status"] == UNSTARTED)


def write(rows: list[dict[str, Any]], seed: int, door: str) -> None:
    """Keep the results of a front door and write the page from those of both."""
    with alone():
        known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        for key, paddle in ((door, False), (f"{door}-paddle", True)):
            if mine := [row for row in rows if row.get("paddle", False) is paddle]:
                known[key] = {"seed": seed, "commit": commit(), "classes": classes(mine), "faults": by_fault(mine)}
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        PAGE.write_text(page(known))


def by_fault(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Fault -> how many cases had it, what they ended with, and what was wrong."""
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"cases": 0, "ended": Counter(), "wrong": []})
    for row in rows:
        for name in row["name"].partition(PADDLE)[0].split(" + "):
            one = found[name]
            one["cases"] += 1
            one["ended"][row["seen"]["status"]] += 1
            one["wrong"] += [f"case {row['number']}: {kind}: {text}"[:200] for kind, text in row["wrong"].items()]
    return {name: {**one, "ended": dict(one["ended"])} for name, one in sorted(found.items())}


def page(known: dict[str, Any]) -> str:
    """docs/random-faults.md."""
    parts = [HEAD]
    for door, title in TITLES.items():
        if door in known:
            parts += _part(title, known[door])
    return "".join(parts)


def _part(title: str, result: dict[str, Any]) -> list[str]:
    right = result["classes"]["right"]
    parts = [f"\n## {title}\n\nSeed {result['seed']}, commit {result['commit']}; {right} cases as expected.\n\n"]
    parts.append("| class | cases |\n|---|---|\n")
    parts += [f"| {kind} | {count} |\n" for kind, count in result["classes"].items()]
    parts.append("\n| fault | cases | ended as | wrong |\n|---|---|---|---|\n")
    for name, one in result["faults"].items():
        ended = ", ".join(f"{count} `{status}`" for status, count in sorted(one["ended"].items()))
        wrong = "; ".join(one["wrong"]).replace("|", "/").replace("\n", " ") or "–"
        parts.append(f"| {name} | {one['cases']} | {ended} | {wrong} |\n")
    return parts
