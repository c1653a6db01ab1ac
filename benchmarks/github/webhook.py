"""Response times of the GitHub webhook under load: signed deliveries at --rate a second for --seconds.

A real Airflow (api-server, scheduler, DAG processor, triggerer) receives them at /certification/webhook/github,
with the metrics database in SQLite, and in PostgreSQL where its server is installed. A third of the deliveries
are pull requests, a third comments, a third repeat an earlier delivery. Every delivery must get
202 or 200, and be stored once.

What a user would call instead, from a workflow of GitHub Actions: Airflow's REST API starts a DAG run, 2 a second.

Prints a table and writes benchmarks/results/webhook.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from sqlalchemy import func, select  # noqa: E402
from tests.support import postgres  # noqa: E402

from devcluster.airflow.stack import airflow_stack  # noqa: E402
from tipcflow.airflow_api import Airflow  # noqa: E402
from tipcflow.github.webhook.delivery import signature  # noqa: E402
from tipcflow.store import Store  # noqa: E402
from tipcflow.store import schema as tables  # noqa: E402

AIM_MS = 200.0
SECRET = "secret"
REPOSITORY = "o/r"
THREADS = 40
# At 20 a second, requests of the REST API time out after 60 s with SQLite as the database of Airflow.
REST_RATE, REST_COUNT = 2.0, 30
# Airflow needs a DAG to start; it has nothing to do.
IDLE_DAG = """
from datetime import datetime

from airflow.sdk import dag


@dag(schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=True)
def idle():
    pass


idle()
"""


def delivery(number: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a delivery; every third repeats the one before it."""
    unique = number + (0 if number % 3 == 2 else 1)
    sender = {"login": "author", "type": "User"}
    payload: dict[str, Any] = {"repository": {"full_name": REPOSITORY}, "sender": sender, "unused": "x" * 20_000}
    if number % 3:
        event = "issue_comment"
        issue = {"number": unique, "pull_request": {"url": "u"}, "user": sender, "state": "open"}
        payload |= {"action": "created", "issue": issue, "comment": {"id": unique, "body": "/tipc help"}}
    else:
        event = "pull_request"
        head = {"sha": f"{unique:040x}", "repo": {"full_name": REPOSITORY}}
        pull = {
            "number": unique,
            "state": "open",
            "draft": False,
            "changed_files": 2,
            "user": sender,
            "labels": [],
        }
        payload |= {
            "action": "opened",
            "pull_request": {**pull, "head": head, "base": {"ref": "main", "sha": "0" * 40}},
        }
    body = json.dumps(payload).encode()
    return body, {
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": str(uuid.UUID(int=unique)),
        "X-Hub-Signature-256": signature(SECRET.encode(), body),
        "Content-Type": "application/json",
    }


def at_rate(rate: float, count: int, send: Callable[[int], int]) -> tuple[list[float], Counter[int]]:
    """Send `count` requests at fixed times, however long responses take; return milliseconds and status codes.

    A request that has to wait for a free thread is late: its time counts from when it was due.
    """
    begun = time.monotonic() + 0.5
    answered: Counter[int] = Counter()

    def one(number: int) -> float:
        due = begun + number / rate
        time.sleep(max(0.0, due - time.monotonic()))
        answered[send(number)] += 1
        return (time.monotonic() - due) * 1000

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(count))), answered


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=float, default=20.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    count = int(options.rate * options.seconds)
    rows: dict[str, dict[str, Any]] = {}
    for database in ("SQLite", "PostgreSQL"):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tipcflow-webhook-")))
            url = f"sqlite:///{folder}/home/tipcflow.db"
            if database == "PostgreSQL":
                if postgres.binaries() is None:
                    print("PostgreSQL's server is not installed: not measured")
                    continue
                url = stack.enter_context(postgres.running()).create()
            address, auth = stack.enter_context(airflow(folder, url))
            with httpx.Client(timeout=60) as client:
                rows[f"webhook, {database}"] = webhook(client, address, options.rate, count, url)
                if database == "SQLite":
                    rows["REST API: start a DAG run"] = rest(client, address, auth)
    show(rows)
    results = ROOT / "benchmarks" / "results" / "webhook.json"
    results.parent.mkdir(exist_ok=True)
    run = {"unit": "ms", "cores": os.cpu_count(), "rate": options.rate, "requests": count, "rows": rows}
    results.write_text(json.dumps(run, indent=1) + "\n")


@contextmanager
def airflow(folder: Path, url: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A real Airflow; yields its address and the header of a logged-in user."""
    dags, configs = folder / "dags", folder / "configs"
    dags.mkdir()
    (dags / "idle.py").write_text(IDLE_DAG)
    (configs / "repositories").mkdir(parents=True)
    for name in ("suites", "clusters", "policies"):
        (configs / name).symlink_to(ROOT / "configs" / name)
    (configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    own = {"name": REPOSITORY, "connection": "app", "suite": "mobilenet_v3_small", "cluster": "example"}
    (configs / "repositories" / "r.yaml").write_text(yaml.safe_dump(own))
    with (
        Store.open(url),
        airflow_stack(
            folder / "home",
            dags=dags,
            plugins=ROOT / "plugins",
            configs=configs,
            connections={
                "AIRFLOW_CONN_APP": json.dumps({"conn_type": "generic", "login": "1", "password": SECRET})
            },
            env={"TIPCFLOW_DATABASE_URL": url},
            report=print,
        ) as made,
        Airflow(made.url, user=made.user, password=made.password) as api,
    ):
        deadline = time.monotonic() + 120
        while "idle" not in {dag.dag_id for dag in api.dags()}:
            assert time.monotonic() < deadline, api.import_errors()
            time.sleep(1)
        login = {"username": made.user, "password": made.password}
        token = (
            httpx.post(f"{made.url}/auth/token", json=login, timeout=60).raise_for_status().json()["access_token"]
        )
        yield made.url, {"Authorization": f"Bearer {token}"}


def webhook(client: httpx.Client, address: str, rate: float, count: int, url: str) -> dict[str, Any]:
    """The webhook's row; checks that every delivery was stored once."""

    def send(number: int) -> int:
        body, headers = delivery(number)
        return client.post(f"{address}/certification/webhook/github", content=body, headers=headers).status_code

    send(3 * count)  # the first request of a process reads the configuration
    took, answered = at_rate(rate, count, send)
    assert set(answered) <= {200, 202}, answered
    with Store.open(url) as store, store.database.engine.connect() as connection:
        stored = connection.execute(select(func.count()).select_from(tables.outbox)).scalar_one()
    expected = 1 + len({delivery(number)[1]["X-GitHub-Delivery"] for number in range(count)})
    assert stored == expected, f"{stored} deliveries stored, {expected} sent"
    return row(took, answered)


def rest(client: httpx.Client, address: str, auth: dict[str, str]) -> dict[str, Any]:
    """The row of Airflow's own way to start a run."""

    def send(number: int) -> int:
        body = {"dag_run_id": f"bench_{number}", "logical_date": None}
        return client.post(f"{address}/api/v2/dags/idle/dagRuns", json=body, headers=auth).status_code

    return row(*at_rate(REST_RATE, REST_COUNT, send))


def row(took: list[float], answered: Counter[int]) -> dict[str, Any]:
    """Reported values of one way."""
    cuts = statistics.quantiles(took, n=100)
    values = {"median": statistics.median(took), "p95": cuts[94], "p99": cuts[98], "max": max(took)}
    return {**values, "responses": dict(answered), "load": os.getloadavg()[0]}


def show(rows: dict[str, dict[str, Any]]) -> None:
    """Print the table."""
    reference = rows.get("REST API: start a DAG run", {}).get("p95", 0.0)
    print(
        f"\n{'':<28}{'median ms':>11}{'p95 ms':>9}{'p99 ms':>9}{'max ms':>9}{'p95 / REST':>12}{'load':>6}  status"
    )
    for name, one in rows.items():
        ratio = f"{one['p95'] / reference:.2f}" if reference else "–"
        print(f"{name:<28}{one['median']:>11.0f}{one['p95']:>9.0f}{one['p99']:>9.0f}{one['max']:>9.0f}", end="")
        print(f"{ratio:>12}{one['load']:>6.1f}  {one['responses']}")
    print(f"aim: p95 of the webhook at most {AIM_MS:.0f} ms")


if __name__ == "__main__":
    main()
