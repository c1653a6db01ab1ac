"""Insert rate of measurements from one process, including the check for duplicates.

For runs of three sizes, on SQLite and PostgreSQL: measurements per second of wall clock, and per second of the
process's own CPU (the server's is not in it), the first time and again; storing again must add 0. --mlflow PYTHON
logs the same metrics with that interpreter's MLflow into its SQLite backend, 1,000 at a time, the most it takes.

Prints a table and writes benchmarks/results/store_ingest.json.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from sqlalchemy import insert  # noqa: E402
from store_data import a_run, database, measured  # noqa: E402
from store_history import attempts_of, steps_of  # noqa: E402

from tipcflow.domain import Measurement, Run  # noqa: E402
from tipcflow.store import Store  # noqa: E402
from tipcflow.store import schema as tables  # noqa: E402

AIM = 50_000
# (what, lines that each rank printed, ranks, runs); a line holds six numbers.
SIZES = (("lite run", 30, 2, 100), ("8 ranks", 200, 8, 20), ("whole run", 5000, 8, 1))
MLFLOW = """
import json, sys, time
from mlflow.entities import Metric
from mlflow.tracking import MlflowClient
client = MlflowClient(f"sqlite:///{sys.argv[1]}/mlflow.db")
experiment = client.create_experiment("tipcflow", artifact_location=sys.argv[1])
rows = json.load(sys.stdin)
run = client.create_run(experiment).info.run_id
metrics = [Metric(name, value, 1795000000000, step) for name, value, step in rows]
before, cpu = time.perf_counter(), time.process_time()
for start in range(0, len(metrics), 1000):
    client.log_batch(run, metrics[start:start + 1000])
print(json.dumps([len(metrics) / (time.perf_counter() - before), len(metrics) / (time.process_time() - cpu)]))
"""


def begin(store: Store, run: Run) -> None:
    """The run, steps and attempts that measurements belong to."""
    with store.database.write() as connection:
        connection.execute(insert(tables.runs), run.model_dump())
        connection.execute(insert(tables.steps), steps_of(run))
        connection.execute(insert(tables.attempts), attempts_of(run))


def rates(store: Store, several: list[list[Measurement]]) -> dict[str, float]:
    """Store runs, then store all of them a second time."""
    count = sum(map(len, several))
    found = {}
    for name, expected in (("first", count), ("again", 0)):
        before, cpu = time.perf_counter(), time.process_time()
        added = sum(store.measurements.add(items) for items in several)
        found[name] = count / (time.perf_counter() - before)
        found[f"{name}, CPU"] = count / (time.process_time() - cpu)
        if added != expected:
            raise SystemExit(f"{name}: {added} were added, {expected} expected")
    return found


def mlflow(python: str, items: list[Measurement]) -> dict[str, float]:
    """The same measurements as MLflow metrics, one name per series."""
    rows = [
        (f"{m.step}/{m.leg or 'no leg'}/{m.rank}/{m.metric}".replace(",", "_"), m.value, m.ordinal) for m in items
    ]
    with tempfile.TemporaryDirectory(prefix="tipcflow-bench-") as folder:
        argv = [python, "-c", MLFLOW, folder]
        report, quiet = json.dumps(rows), os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"}
        done = subprocess.run(
            argv, input=report, capture_output=True, text=True, timeout=1800, check=False, env=quiet
        )
    if done.returncode:
        raise SystemExit(f"MLflow failed: {done.stderr[-2000:]}")
    wall, cpu = json.loads(done.stdout.splitlines()[-1])
    return {"first": wall, "first, CPU": cpu}


def bench(store: Store, lines: int, ranks: int, runs: int) -> tuple[dict[str, float], list[Measurement]]:
    """One size on one database. Returns the rates and the number of measurements per run."""
    several = []
    for number in range(runs):
        run = a_run(number, 0, now=time.time() + lines, weeks=1).model_copy(update={"id": f"run-{lines}-{number}"})
        begin(store, run)
        several.append(list(measured(run, random.Random(number), lines=lines, ranks=ranks)))
    return rates(store, several), several[0]


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mlflow", metavar="PYTHON", help="Python interpreter of an environment with MLflow")
    args = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    print(f"measurements per second, goal {AIM:,} of wall clock; in brackets per second of the process's CPU")
    for kind in ("sqlite", "postgresql"):
        with database(kind) as url, Store.open(url) as store:
            for what, lines, ranks, runs in SIZES:
                one, items = bench(store, lines, ranks, runs)
                found[f"{kind}, {what}"] = one
                show(f"{kind}, {what}", one, len(items))
                if args.mlflow and kind == "sqlite" and what != "whole run":
                    found[f"MLflow, {what}"] = peer = mlflow(args.mlflow, items)
                    show(f"MLflow, {what}", peer, len(items))
                    print(f"{'':24} ratio {one['first'] / peer['first']:.0f}", flush=True)
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "store_ingest.json").write_text(json.dumps(found, indent=1))


def show(name: str, one: dict[str, float], count: int) -> None:
    """One line of the table."""
    words = [
        f"{word} {one[word]:>9,.0f} ({one[word + ', CPU']:>9,.0f})" for word in ("first", "again") if word in one
    ]
    print(f"{name:24} {count:>7,} a run  {'  '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
