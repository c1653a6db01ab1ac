"""Cases through a real Airflow with PostgreSQL: one Airflow, several seats, each case with nodes of its own."""

import queue
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.airflow.case import run_case
from tests.faults.airflow.seat import Seat
from tests.faults.catalogue import Draw, draw
from tests.faults.oracle import wrong
from tests.support import postgres
from tests.support.certify import ROOT, wait_for

from devcluster.airflow.stack import Stack, airflow_stack
from tipcflow.airflow_api import Airflow

# Airflow notices a dead task's process after this; shipped are 60 s.
HEARTBEAT_S = 20
READY_S = 180.0
Row = dict[str, Any]


class Deployment(NamedTuple):
    """What the cases share."""

    stack: Stack
    server: postgres.Server
    url: str
    seats: tuple[Seat, ...]


def run_cases(numbers: Iterable[int], seed: int, *, jobs: int, only: str, paddle: float) -> Iterator[Row]:
    """The rows of all cases, each as soon as it has ended. Faults of Airflow itself come first, one at a time."""
    drawn = [draw(number, seed, "airflow", only=only, paddle=paddle) for number in numbers]
    with tempfile.TemporaryDirectory(prefix="tipcflow-door-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with deployment(folder, jobs) as deployed:
            free: queue.Queue[Seat] = queue.Queue()
            for seat in deployed.seats:
                free.put(seat)

            def case(one: Draw) -> Row:
                seat = free.get()
                try:
                    return _row(one, folder / f"case-{one.number}", seat, deployed)
                finally:
                    free.put(seat)

            apart = [one for one in drawn if any(fault.shared for fault in one.faults)]
            yield from map(case, apart)
            with ThreadPoolExecutor(max_workers=jobs) as pool:
                together = [pool.submit(case, one) for one in drawn if one not in apart]
                for ended in as_completed(together):
                    yield ended.result()


@contextmanager
def deployment(folder: Path, seats: int) -> Iterator[Deployment]:
    """PostgreSQL, Airflow and the seats' DAGs, ready."""
    configs = folder / "configs"
    shutil.copytree(ROOT / "configs" / "policies", configs / "policies")
    for name in ("suites", "clusters"):
        (configs / name).mkdir()
    (configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    dags = folder / "dags"
    shutil.copytree(ROOT / "dags", dags, ignore=shutil.ignore_patterns("chains_*", "__pycache__"))
    made = tuple(Seat(number + 1, configs, folder / "suites") for number in range(seats))
    for seat in made:
        seat.make(dags)
    with postgres.running() as server:
        url = server.create()
        env = {
            "TIPCFLOW_DATABASE_URL": url,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": server.create().replace("postgresql:", "postgresql+psycopg2:"),
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_S),
        }
        with airflow_stack(
            folder / "home", dags=dags, plugins=ROOT / "plugins", configs=configs, env=env
        ) as stack:
            _wait_for_dags(stack, {seat.dag_id for seat in made})
            yield Deployment(stack, server, url, made)


def _wait_for_dags(stack: Stack, wanted: set[str]) -> None:
    api = Airflow(stack.url, user=stack.user, password=stack.password)
    wait_for(
        lambda: wanted <= {dag.dag_id for dag in api.dags()},
        what=f"the DAGs {', '.join(sorted(wanted))}: {api.import_errors()}",
        seconds=READY_S,
    )


def _row(drawn: Draw, folder: Path, seat: Seat, deployed: Deployment) -> Row:
    """A case's row; an injector that fails is a row, too."""
    began = time.monotonic()
    head = {"number": drawn.number, "name": drawn.name, "paddle": drawn.paddle}
    head |= {"target": drawn.target, "rank": drawn.rank, "iteration": drawn.iteration, "delay_s": drawn.delay_s}
    try:
        seen = run_case(drawn, folder, seat, deployed.stack, deployed.server, deployed.url)
    except Exception as error:
        what = f"{type(error).__name__}: {str(error)[:500]}"
        seconds = time.monotonic() - began
        return {**head, "seen": {"status": "injector failed", "seconds": seconds}, "wrong": {"injector": what}}
    return {**head, "seen": asdict(seen), "wrong": wrong(drawn.faults, drawn.target, seen, rank=drawn.rank)}
