"""The metrics database with 10 million measurements: 500 chains, a run a week for a year, on both databases.

Runs are filled in with the store's own statements, many to a transaction. Then each query runs --times
times, for chains at random, as its users run it:

    history     Store.history of batch_cost in training on one kind of nodes: 42 of 52 runs, 2 ranks each
    each        the same, a row per rank, from the summaries alone
    verdicts    the page of chains with their newest verdicts, 50 chains
    worst       the same, of the chains whose newest run failed
    run         all measurements of one run

The table has milliseconds of wall clock, and of this process's CPU (a server's is not in it), which shows what a
quiet machine would take. --rows measures the layout that was not chosen, too: a row per measurement, aggregated
by the reader.
Prints tables and writes benchmarks/results/store_history.json. Needs 2 GB below /tmp (7 GB with --rows).
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from sqlalchemy import Connection, insert, text  # noqa: E402
from store_data import INFER, TRAIN, V100, a_run, chain_name, database, measured  # noqa: E402
from store_rows import Rows  # noqa: E402

from tipcflow.domain import Run  # noqa: E402
from tipcflow.store import Store  # noqa: E402
from tipcflow.store import schema as tables  # noqa: E402
from tipcflow.store.queries.pages import RunFilter  # noqa: E402
from tipcflow.store.queries.readonly import ReadonlyStore  # noqa: E402
from tipcflow.store.series import measurements as own  # noqa: E402

AIM_MS = 100.0
TOGETHER = 50
VARIED = 20
STEPS = ((TRAIN, "train"), ("norm_train_gpus_0,1_autocast_null/eval", "eval"), (INFER, "infer_gpu"))


class Numbers:
    """Measurements of runs: VARIED ones per kind of node, then repeated under other run IDs."""

    def __init__(self) -> None:
        rng = random.Random(1)
        kinds = {run.environment: run for run in (a_run(0, week, now=0, weeks=5) for week in range(5))}
        self.items = {kind: [list(measured(run, rng)) for _ in range(VARIED)] for kind, run in kinds.items()}
        self.packed = {
            kind: [[own._row(key, found) for key, found in own._grouped(items).items()] for items in several]
            for kind, several in self.items.items()
        }


def fill(store: Store, chains: int, weeks: int, rows: Rows | None) -> int:
    """Store all runs, oldest week first. Returns the number of measurements."""
    numbers, now, count = Numbers(), time.time(), 0
    made: list[Run] = []
    for week in range(weeks):
        for chain in range(chains):
            made.append(a_run(chain, week, now=now, weeks=weeks))
            if len(made) == TOGETHER or (week, chain) == (weeks - 1, chains - 1):
                count += put(store, made, numbers, rows)
                made = []
    return count


def put(store: Store, made: list[Run], numbers: Numbers, rows: Rows | None) -> int:
    """Several runs in one transaction."""
    chosen = [(run, sum(run.id.encode()) % VARIED) for run in made]
    packed = [(run.id, *row[1:]) for run, which in chosen for row in numbers.packed[run.environment][which]]
    with store.database.write() as connection:
        connection.execute(insert(tables.runs), [run.model_dump() for run in made])
        connection.execute(insert(tables.steps), [step for run in made for step in steps_of(run)])
        connection.execute(insert(tables.attempts), [attempt for run in made for attempt in attempts_of(run)])
        for start in range(0, len(packed), own.BATCH):
            own.insert(connection, packed[start : start + own.BATCH])
        if rows is not None:
            for run, which in chosen:
                rows.put(connection, run.id, numbers.items[run.environment][which])
    return sum(len(numbers.items[run.environment][which]) for run, which in chosen)


def steps_of(run: Run) -> list[dict[str, Any]]:
    """Rows of table steps."""
    shared = {"run": run.id, "variant": "", "repeat": 1, "world_size": 2, "status": "pass", "reason": ""}
    return [shared | {"step": step, "position": place, "kind": kind} for place, (step, kind) in enumerate(STEPS)]


def attempts_of(run: Run) -> list[dict[str, Any]]:
    """Rows of table attempts."""
    shared = {"run": run.id, "attempt": 1, "nodes": ["node-a"], "status": "pass", "reason": "", "records": []}
    times = {"started_at": run.created_at, "ended_at": run.ended_at}
    return [shared | times | {"step": step} for step, _ in STEPS]


def asked(store: ReadonlyStore, chains: int, weeks: int, rows: Rows | None) -> dict[str, Callable[[], object]]:
    """The queries, each with random arguments."""
    rng = random.Random(2)

    def chain() -> str:
        return chain_name(rng.randrange(chains))

    def run() -> str:
        return a_run(rng.randrange(chains), rng.randrange(weeks), now=0, weeks=weeks).id

    def rows_of_chain(connection: Connection) -> object:
        assert rows is not None
        return rows.history(connection, chain(), TRAIN, "batch_cost", V100)

    def by_rows() -> object:
        with store.database.read() as connection:
            return rows_of_chain(connection)

    found: dict[str, Callable[[], object]] = {
        "history": lambda: store.frames.history(chain(), TRAIN, "batch_cost", V100),
        "each": lambda: store.frames.history(chain(), TRAIN, "batch_cost", V100, each=True),
        "verdicts": lambda: store.pages.chains(RunFilter(), limit=50),
        "worst": lambda: store.pages.chains(RunFilter(status="failed"), limit=50),
        "run": lambda: store.measurements.of(run()),
    }
    return found | ({"history, rows": by_rows} if rows is not None else {})


def times_of(question: Callable[[], object], times: int) -> dict[str, float]:
    """Milliseconds per query, without the first, which imports pandas."""
    question()
    took = []
    cpu = time.process_time()
    for _ in range(times):
        before = time.perf_counter()
        question()
        took.append((time.perf_counter() - before) * 1e3)
    mean = (time.process_time() - cpu) / times * 1e3
    took.sort()
    return {"cpu": mean, "median": took[len(took) // 2], "p95": took[int(len(took) * 0.95)], "max": took[-1]}


def size_of(connection: Connection, table: str) -> int:
    """Bytes of a table with its index."""
    if connection.dialect.name == "postgresql":
        return int(connection.execute(text(f"SELECT pg_total_relation_size('{table}')")).scalar_one())
    query = text("SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND name = :name")
    try:
        return int(connection.execute(query, {"name": table}).scalar_one())
    except Exception:  # this SQLite was built without dbstat: all of the file then
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        return int(pages) * int(connection.execute(text("PRAGMA page_size")).scalar_one())


def bench(kind: str, args: argparse.Namespace) -> dict[str, Any]:
    """Fill and query one database."""
    with database(kind) as url, Store.open(url) as store:
        rows = Rows() if args.rows else None
        with store.database.write() as connection:
            if rows is not None:
                rows.create(connection)
        before = time.perf_counter()
        count = fill(store, args.chains, args.weeks, rows)
        filled = time.perf_counter() - before
        with store.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE" if kind == "postgresql" else "ANALYZE")
        with store.database.read() as connection:
            sizes = {name: size_of(connection, name) for name in (["series", "rows"] if rows else ["series"])}
        reader = ReadonlyStore.of(url)
        answers = {
            name: times_of(question, args.times)
            for name, question in asked(reader, args.chains, args.weeks, rows).items()
        }
        reader.close()
    per_million = {name: size / count for name, size in sizes.items()}  # bytes each is MB per million
    return {"measurements": count, "fill_s": filled, "mb_per_million": per_million, "ms": answers}


def main() -> None:
    """Fill, query, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=500)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--on", choices=["sqlite", "postgresql"], action="append")
    args = parser.parse_args()
    found = {}
    for kind in args.on or ["sqlite", "postgresql"]:
        found[kind] = one = bench(kind, args)
        sizes = ", ".join(f"{name} {size:.0f} MB" for name, size in one["mb_per_million"].items())
        print(f"{kind}: {one['measurements']:,} measurements in {one['fill_s']:.0f} s; per million {sizes}")
        heads = ("question", "median", "p95", "max", "own CPU")
        print("  {:14} {:>8} {:>8} {:>8} {:>8}".format(*heads), f" ms, goal p95 {AIM_MS:.0f}")
        for name, took in one["ms"].items():
            print(f"  {name:14} {took['median']:8.1f} {took['p95']:8.1f} {took['max']:8.1f} {took['cpu']:8.1f}")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "store_history.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
