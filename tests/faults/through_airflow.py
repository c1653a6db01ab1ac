"""Cases through a real Airflow with PostgreSQL: one Airflow and one pair of nodes, one case at a time."""

import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.faults.case import left_behind, look, prepare, strike
from tests.faults.catalogue import Draw, draw
from tests.faults.oracle import Seen, wrong
from tests.faults.world import World
from tests.support import postgres
from tests.support.certify import ROOT, Desk
from tests.support.scheduler import DAG, Scheduler, make_catalog

from tipcflow.demo.airflow.connections import connections_env
from tipcflow.demo.airflow.stack import airflow_stack
from tipcflow.demo.nodes import LocalNodes, local_nodes

END_S = 300.0
VERDICT_S = 120.0


def run_cases(
    numbers: Iterable[int], seed: int, *, only: str, report: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """All cases, in order; each row is reported as soon as it is there."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="tipcflow-airflow-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (
            postgres.running() as server,
            local_nodes(folder / "nodes", python=Path(sys.executable)) as nodes,
        ):
            desk = Desk(folder / "user", nodes, database_url=server.create())
            dags = make_catalog(desk)
            (desk.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
            with airflow_stack(
                desk.home,
                dags=dags,
                plugins=ROOT / "plugins",
                configs=desk.configs,
                env={"TIPCFLOW_DATABASE_URL": desk.database_url},
                connections=connections_env(nodes.cluster),
            ) as stack:
                scheduler = Scheduler(desk, stack)
                scheduler.wait_for_dags(DAG, "confirm")
                for number in numbers:
                    drawn = draw(number, seed, "airflow", only=only)
                    row = _row(drawn, _case(drawn, folder / f"case-{number}", scheduler, nodes))
                    rows.append(row)
                    report(row)
    return rows


def _row(drawn: Draw, seen: Seen) -> dict[str, Any]:
    return {
        "number": drawn.number,
        "name": drawn.name,
        "victim": drawn.victim,
        "seen": asdict(seen),
        "wrong": wrong(drawn.faults, drawn.victim, seen),
    }


def _case(drawn: Draw, folder: Path, scheduler: Scheduler, nodes: LocalNodes) -> Seen:
    desk = scheduler.desk
    kept = folder / "kept"
    shutil.copytree(desk.suite, kept / "suite")
    policy = desk.configs / "policies" / "pr.yaml"
    shutil.copy(policy, kept / "pr.yaml")
    rng = random.Random(f"{drawn.seed}/{drawn.number}/acts")
    world = World(folder, desk, rng, drawn.victim, drawn.rank, drawn.iteration)
    try:
        return _run(drawn, world, scheduler)
    finally:
        for undo in world.undo:
            with contextlib.suppress(Exception):
                undo()
        shutil.copytree(kept / "suite", desk.suite, dirs_exist_ok=True)
        shutil.copy(kept / "pr.yaml", policy)
        for node in nodes.cluster.nodes:
            for process in nodes.processes(node.name):
                nodes.exec(node.name, ["kill", "-9", str(process.pid)])


def _run(drawn: Draw, world: World, scheduler: Scheduler) -> Seen:
    world.set_up()
    prepare(drawn, world)
    began = time.monotonic()
    dag_run = scheduler.start()

    def over() -> bool:
        return scheduler.now(dag_run).state.ended

    # A task of Airflow takes seconds to start: the moment is counted from the first step on.
    world.wait(lambda: bool(world.run_folders()), 120, over)
    struck = strike(drawn, world, over)
    try:
        scheduler.ended(dag_run, END_S)
        world.wait(lambda: scheduler.run_of(dag_run).status is not None, VERDICT_S, lambda: False)
    except AssertionError as error:
        return Seen("stuck", reason=str(error)[:300], seconds=time.monotonic() - began)
    seen = look(world, "", started_at=began, run=dag_run.run)
    seen.struck = struck
    seen.left = left_behind(world)
    return seen
