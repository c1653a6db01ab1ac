"""Response times of the Certification pages: 1,000 chains with 20 runs each, in SQLite.

The newest run of each chain has a plan, steps and 800 losses of 4 ranks; the older ones have their row only, which
is all that lists read. One more chain has 60 runs with the metrics of 4 ranks and 8 legs, half of them without
cached metric values; its page and a comparison of its runs are measured, too. Each page is requested --times times
from our app alone, without Airflow's login; the table shows the median and the slowest answer and the median of
its CPU in milliseconds, the client's share included, and the size of the page.

Prints a table and writes benchmarks/results/pages.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from fastapi.testclient import TestClient  # noqa: E402
from sqlalchemy import Connection, insert  # noqa: E402
from tests.support.stories import INFER, TRAIN, a_plan, a_record, some_facts  # noqa: E402

from tipcflow.domain import CheckResult, Measurement, Phase, Run, Status  # noqa: E402
from tipcflow.store import Store  # noqa: E402
from tipcflow.store import schema as tables  # noqa: E402
from tipcflow.store.engine import make_engine, writing  # noqa: E402

AIM_MS = 200.0
WORDS = (Status.PASS, Status.PASS, Status.PASS, Status.FAILED, Status.REGRESSION, Status.INFRA_FAILURE)
T0 = 1_795_000_000.0
LOSSES, RANKS = 200, 4
# Number of the chain whose runs have metrics.
MEASURED = 999_000


def a_run(chain: int, number: int, where: int = 0) -> Run:
    """One of many runs; the last run of every sixth chain fails."""
    begun = T0 + number * 86_400 + chain + 1200 * where
    status = WORDS[(chain + number) % len(WORDS)]
    return Run(
        id=f"20261121t{chain:06}-model_{chain}-{where:x}{number:04x}",
        chain=f"suite_{chain % 4}/model_{chain}/train_infer_python",
        suite=f"suite_{chain % 4}",
        model=f"model_{chain}",
        mode="lite_train_lite_infer",
        cluster="fleet",
        suite_commit=f"{chain * 1000 + number:040x}",
        framework="paddle 3.3.1",
        nodes=("node-a", "node-b"),
        environment=f"cpu/some-cpu-{where}/2-nodes/4-ranks",
        status=status,
        reason="; ".join(f"step {part} of the chain: what was found and what was expected" for part in range(4)),
        created_at=begun,
        ended_at=begun + 120,
    )


def newest(connection: Connection, run: Run) -> None:
    """All data that the page of one run shows."""
    plan = a_plan()
    one = {"run": run.id}
    body = {
        "schema_version": 1,
        "params_file": plan.params_file,
        "params_sha256": plan.params_sha256,
        "body": plan,
    }
    connection.execute(insert(tables.plans), one | body)
    steps = [
        one
        | {"step": step.id, "position": place, "kind": step.kind, "variant": step.variant, "repeat": 1}
        | {"world_size": step.world_size, "status": Status.PASS, "reason": ""}
        for place, step in enumerate(plan.steps)
    ]
    connection.execute(insert(tables.steps), steps)
    tried = [
        one
        | {"step": step.id, "attempt": 1, "nodes": list(step.nodes), "status": Status.PASS, "reason": ""}
        | {"records": [a_record(run.id, step.id, node) for node in step.nodes]}
        | {"started_at": run.created_at, "ended_at": run.created_at + 60}
        for step in plan.steps
    ]
    connection.execute(insert(tables.attempts), tried)


def details(store: Store, run: Run) -> None:
    """Losses and the smaller parts, written with the store's methods."""
    store.measurements.add(
        Measurement(
            run=run.id,
            step=TRAIN,
            attempt=1,
            node="node-a",
            rank=rank,
            metric="loss",
            phase=Phase.TRAIN,
            ordinal=ordinal,
            value=1 / (1 + ordinal),
            epoch=1,
            iteration=ordinal,
            source=f"workerlog.{rank}",
        )
        for rank in range(RANKS)
        for ordinal in range(LOSSES)
    )
    store.nodes.save(run.id, [some_facts(node) for node in run.nodes])
    for leg in ("cpu_onednn_on", "cpu_onednn_off"):
        store.steps.set_leg(run.id, INFER, leg, 1, Status.PASS, "", a_record(run.id, INFER, leg=leg))
    answers = [
        CheckResult(
            check=f"speed.metric_{number % 9}", status=Status.PASS, reason="as before", values={"n": number}
        )
        for number in range(40)
    ]
    store.checks.replace(run.id, answers)


def fill(url: str, chains: int, history: int, environments: int) -> Run:
    """Create the database. Returns the run whose page is measured."""
    with Store.open(url) as store:
        places = [(chain, number) for chain in range(chains) for number in range(history)]
        runs = [a_run(chain, number, where) for chain, number in places for where in range(environments)]
        last = [run for run in runs if run.id.endswith(f"-0{history - 1:04x}")]
        engine = make_engine(url)
        with writing(engine) as connection:
            connection.execute(insert(tables.runs), [run.model_dump() for run in runs])
            for run in last:
                newest(connection, run)
        engine.dispose()
        details(store, last[-1])
    return last[-1]


def measured_chain(store: Store, runs: int = 60) -> list[Run]:
    """A chain whose runs have metrics."""
    made = []
    for number in range(runs):
        run = a_run(MEASURED, number).model_copy(update={"status": None, "ended_at": None})
        store.runs.create(run, a_plan())
        for step, nodes in ((TRAIN, run.nodes), (INFER, run.nodes[:1])):
            attempt = store.attempts.open(run.id, step, nodes, run.created_at)
            records = [a_record(run.id, step, node) for node in nodes]
            store.attempts.close(run.id, step, attempt, Status.PASS, "", records, run.created_at + 60)
        store.measurements.add(_metrics_of(run))
        store.runs.finish(run.id, Status.PASS, "", run.created_at + 120)
        if number % 2:
            store.history.past_run(run.id)  # caches its metric values
        made.append(run)
    return made


def _metrics_of(run: Run) -> Iterator[Measurement]:
    train = {"run": run.id, "step": TRAIN, "node": "node-a"}
    for rank in range(RANKS):
        for ordinal in range(LOSSES):
            for name in ("loss", "batch_cost", "ips"):
                value = 1 + ordinal % 7 / 100
                yield Measurement(**train, rank=rank, metric=name, phase=Phase.TRAIN, ordinal=ordinal, value=value)
        yield Measurement(**train, rank=rank, metric="peak_rss", phase=Phase.RESOURCE, value=3e8)
    for name in ("top1", "top5"):
        yield Measurement(**train, rank=0, metric=name, phase=Phase.EVAL, value=0.7)
    for leg in range(8):
        own = {"run": run.id, "step": INFER, "leg": f"cpu_leg_{leg}", "node": "node-a"}
        for name in ("preprocess_time", "inference_time", "postprocess_time", "cpu_rss"):
            yield Measurement(**own, metric=name, phase=Phase.INFER, value=10.0 + leg)


def client() -> TestClient:
    """The app alone with a stubbed login, so that only the pages are measured."""
    from tipcflow_pages.app import create_app
    from tipcflow_pages.web.access import may_read

    app = create_app()
    app.dependency_overrides[may_read] = lambda: None
    return TestClient(app, headers={"Accept": "text/html"})


def measure(asked: TestClient, path: str, times: int) -> dict[str, Any]:
    """Milliseconds of one page, without the first response, which compiles the templates."""
    spent, work, size = [], [], 0
    for _ in range(times + 1):
        begun, busy = time.perf_counter(), time.process_time()
        answer = asked.get(path)
        spent.append(1000 * (time.perf_counter() - begun))
        work.append(1000 * (time.process_time() - busy))
        if answer.status_code != 200:
            sys.exit(f"{path} answered {answer.status_code}: {answer.text[:500]}")
        size = len(answer.content)
    times_ms = {"median_ms": statistics.median(spent[1:]), "slowest_ms": max(spent[1:])}
    return times_ms | {"cpu_ms": statistics.median(work[1:]), "bytes": size}


def main() -> None:
    """Fill, query, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--history", type=int, default=20)
    parser.add_argument("--environments", type=int, default=1)
    parser.add_argument("--times", type=int, default=15)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TIPCFLOW_HOME": folder, "AIRFLOW_HOME": f"{folder}/airflow"}
        os.environ["TIPCFLOW_DATABASE_URL"] = f"sqlite:///{folder}/tipcflow.db"
        run = fill(os.environ["TIPCFLOW_DATABASE_URL"], wanted.chains, wanted.history, wanted.environments)
        with Store.open(os.environ["TIPCFLOW_DATABASE_URL"]) as store:
            measured = measured_chain(store)
        compared = "&".join(f"run={run.id}" for run in measured[-3:])
        chain = f"chains/{measured[0].chain}"
        pages = {
            "chains": "/",
            "chains, last page": f"/?page={-(-wanted.chains // 50)}",
            "chains, text": "/?text=model_99+expected",
            "chains, failed": "/?status=failed",
            "runs": "/runs",
            "runs, text": "/runs?text=model_99+expected",
            "runs of a chain": f"/runs?chain={run.chain}",
            "today": "/today",
            "coverage": "/coverage",
            "flaky": "/flaky",
            "one run": f"/runs/{run.id}",
            "one run, JSON": f"/api/runs/{run.id}",
            "one run, curves": f"/api/runs/{run.id}/curves",
            "compare 3 runs": f"/compare?{compared}&every=true",
            "chain, 60 runs": f"/{chain}",
            "chain, all metrics": f"/{chain}?every=true",
            "chain, JSON": f"/api/{chain}",
        }
        asked = client()
        found = {name: measure(asked, path, wanted.times) for name, path in pages.items()}
    size = f"{wanted.chains} chains x {wanted.history} runs x {wanted.environments} environments"
    print(f"{size}; ms per page (median, slowest, CPU), goal {AIM_MS:.0f}")
    for name, one in found.items():
        times = " ".join(f"{one[which]:7.1f}" for which in ("median_ms", "slowest_ms", "cpu_ms"))
        print(f"{name:<18} {times} {one['bytes'] / 1024:7.0f} KiB")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "pages.json").write_text(json.dumps({"arguments": vars(wanted), "pages": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
