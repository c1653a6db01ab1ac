"""Response times of the Certification pages: 1,000 chains, 52 weekly runs in each of 3 environment classes.

Each page is requested --times times from the app alone, without Airflow's login. The table has the median, the
95th percentile and the slowest response, the median of the CPU in milliseconds with the client's share, and the
size of the page. The goal is a 95th percentile of 200 ms, and a size of 300 KiB of pages; JSON and CSV have all
rows and no limit. The load average is that of the beginning.

Prints a table and writes benchmarks/results/pages.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins"), str(ROOT / "benchmarks")]

from fastapi.testclient import TestClient  # noqa: E402
from pages_data import (  # noqa: E402
    ALERTS,
    MEASURED,
    NODES,
    PULLS,
    REPOSITORY,
    a_run,
    decisions,
    fill,
    maintain,
    measured_chain,
    node_speeds,
)
from tests.support.stories import INFER, TRAIN  # noqa: E402

from tipcflow.domain import Run  # noqa: E402
from tipcflow.report.chain.series import LineKey  # noqa: E402
from tipcflow.store import Store  # noqa: E402

GOAL_MS, GOAL_KIB = 200.0, 300.0
MEASURED_RUNS = 60
METRICS_TOKEN = "token-of-this-benchmark"


def client() -> TestClient:
    """The app alone with a stubbed login, so that only the pages are measured."""
    from tipcflow_pages.app import create_app
    from tipcflow_pages.web.access import may_read

    app = create_app()
    app.dependency_overrides[may_read] = lambda: None
    os.environ["AIRFLOW_CONN_TIPCFLOW_METRICS"] = json.dumps({"conn_type": "generic", "password": METRICS_TOKEN})
    return TestClient(app, headers={"Accept": "text/html", "Authorization": f"Bearer {METRICS_TOKEN}"})


def measure(requested: TestClient, path: str, times: int) -> dict[str, Any]:
    """Milliseconds of one page, without the first response, which compiles the templates."""
    spent, work, size = [], [], 0
    for _ in range(times + 1):
        begun, busy = time.perf_counter(), time.process_time()
        response = requested.get(path)
        spent.append(1000 * (time.perf_counter() - begun))
        work.append(1000 * (time.process_time() - busy))
        if response.status_code != 200:
            sys.exit(f"{path} returned {response.status_code}: {response.text[:500]}")
        size = len(response.content)
    known = sorted(spent[1:])
    return {
        "median_ms": statistics.median(known),
        "p95_ms": known[min(len(known) - 1, int(0.95 * len(known)))],
        "slowest_ms": known[-1],
        "cpu_ms": statistics.median(work[1:]),
        "bytes": size,
    }


def paths(chains: int, run: Run, runs: list[Run]) -> dict[str, str]:
    """Page -> path.

    Args:
        run: the run with all parts.
        runs: those of the chain with metrics.
    """
    measured, chain, a_chain = runs[-1], runs[-1].chain, run.chain
    compared = "&".join(f"run={each.id}" for each in runs[-3:])
    return {
        "chains": "/",
        "chains, last page": f"/?page={-(-chains // 50)}",
        "chains, text": "/?text=model_99+expected",
        "chains, failed": "/?status=failed",
        "runs": "/runs",
        "runs, failed": "/runs?status=failed",
        "runs, of a suite": "/runs?suite=suite_1",
        "runs, text": "/runs?text=model_99+expected",
        "runs of a chain": f"/runs?chain={a_chain}",
        "today": "/today",
        "changes": "/changes",
        "changes, 90 days": "/changes?days=90",
        "matrix": "/matrix",
        "matrix, 30 builds": "/matrix?columns=30",
        "matrix, variants": "/matrix?by=variant",
        "coverage": "/coverage",
        "flaky": "/flaky",
        "nodes": "/nodes",
        "nodes, 7 days": "/nodes?hours=168",
        "nodes, slower": "/nodes?history=90",
        "versions": f"/versions?{urlencode({'new': run.framework, 'base': run.framework[:-3] + '000'})}",
        "versions, commit": f"/versions?{urlencode({'new': run.suite_commit})}",
        "alerts": "/alerts",
        "alert": "/alerts/1",
        "pull requests": "/pulls",
        "pull request": f"/pulls?{urlencode({'repository': REPOSITORY, 'number': PULLS})}",
        "quarantines": "/quarantines",
        "A/B": "/ab?days=365",
        "scaling": "/scaling",
        "Prometheus": "/metrics",
        "Prometheus, 90 days": "/metrics?days=90",
        **_data(),
        "series, 1 line": f"/series?{lines(measured, 1)}",
        "series, 8 lines": f"/series?{lines(measured, 8)}&last=200",
        "one run": f"/runs/{run.id}",
        "one run, JSON": f"/api/runs/{run.id}",
        "one run, curves": f"/api/runs/{run.id}/curves",
        "compare 3 runs": f"/compare?{compared}&every=true",
        "chain, 60 runs": f"/chains/{chain}",
        "chain, all metrics": f"/chains/{chain}?every=true",
        "chain, JSON": f"/api/chains/{chain}",
    }


def _data() -> dict[str, str]:
    """The facts of pages as JSON and CSV."""
    pages = ("today", "changes", "matrix", "coverage", "flaky", "alerts", "nodes", "pulls", "ab", "scaling")
    forms = (("JSON", ""), ("CSV", "?format=csv"))
    found = {f"{page}, {form}": f"/api/{page}{query}" for page in pages for form, query in forms}
    return {**found, "slower nodes, JSON": "/api/node-history?days=90"}


def lines(chain: Run, count: int) -> str:
    """The query of the page Series with that many metrics of a chain."""
    group = (chain.chain, chain.mode, chain.environment, chain.compat)
    keys = [
        LineKey(*group, TRAIN, "", "batch_cost"),
        *(LineKey(*group, INFER, f"cpu_leg_{leg}", "inference_time") for leg in range(count - 1)),
    ]
    return urlencode([("s", str(key)) for key in keys])


def prepare(url: str, wanted: argparse.Namespace) -> dict[str, str]:
    """Fill the database unless it is filled. Returns page -> path."""
    now = time.time()
    run = a_run(wanted.chains - 1, wanted.weeks - 1, wanted.weeks, now, wanted.environments - 1)
    measured = [a_run(MEASURED, week, MEASURED_RUNS, now) for week in range(MEASURED_RUNS)]
    with Store.open(url) as store:
        is_filled = bool(store.runs.newest(limit=1))
    if not is_filled:
        fill(url, wanted.chains, wanted.weeks, wanted.environments, wanted.nodes)
        with Store.open(url) as store:
            own = measured_chain(store, MEASURED_RUNS)
            last = wanted.weeks - 1
            some = range(min(wanted.chains, ALERTS))
            newest = [a_run(chain, last, wanted.weeks, now, 0, wanted.nodes) for chain in some]
            decisions(store, newest, own)
        node_speeds(url)
    with Store.open(url) as store:
        print(f"maintenance found slower nodes in {maintain(store):.1f} s")
    return paths(wanted.chains, run, measured)


def main() -> None:
    """Fill, query, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--environments", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=NODES, help="of each environment class")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", default="", help="pages whose name begins with this")
    parser.add_argument(
        "--database", default="", help="URL; filled if it is empty. Default: a temporary SQLite file"
    )
    wanted = parser.parse_args()
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ |= {"TIPCFLOW_HOME": folder, "AIRFLOW_HOME": f"{folder}/airflow"}
        url = wanted.database or f"sqlite:///{folder}/tipcflow.db"
        os.environ["TIPCFLOW_DATABASE_URL"] = url
        pages = prepare(url, wanted)
        requested = client()
        chosen = {name: path for name, path in pages.items() if name.startswith(wanted.only)}
        found = {name: measure(requested, path, wanted.times) for name, path in chosen.items()}
    size = f"{wanted.chains} chains x {wanted.weeks} weeks x {wanted.environments} environments"
    goals = f"goal: p95 {GOAL_MS:.0f} ms, {GOAL_KIB:.0f} KiB; load average {load:.1f}"
    print(f"{size}; ms per page (median, p95, slowest, CPU); {goals}")
    for name, one in found.items():
        columns = ("median_ms", "p95_ms", "slowest_ms", "cpu_ms")
        times = " ".join(f"{one[which]:7.1f}" for which in columns)
        is_large = one["bytes"] > GOAL_KIB * 1024 and not name.endswith(("JSON", "CSV"))
        missed = one["p95_ms"] > GOAL_MS or is_large
        print(f"{name:<18} {times} {one['bytes'] / 1024:7.0f} KiB{'  missed' if missed else ''}")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "pages.json").write_text(json.dumps({"arguments": vars(wanted), "pages": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
