"""Overhead of Airflow on top of a chain's commands, broken down by task.

The lite fleet chain of the sample suite, once through a real Airflow (trigger to verdict) and once as the plan's
exact commands in a plain bash loop over ssh, on the same two nodes, in turn. Airflow is up before the first round;
its components' memory is printed at the end.

Prints tables and writes benchmarks/results/airflow_latency.json.
"""

import argparse
import json
import os
import statistics
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import run_overhead as overhead

from devcluster.airflow.stack import Stack, airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.airflow_api import Airflow, DagRun, TaskInstance
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Plan, dag_id_of
from tipcflow.store import Store

ROOT = overhead.ROOT
DAG = dag_id_of("mobilenet_v3_small/mobilenet_v3_small/" + Path(overhead.PARAMS).stem)
PARTS = ("queue", "process start", "graph", "commands on the node", "ours")


def run_chain(api: Airflow, conf: dict[str, Any], number: int) -> tuple[DagRun, float]:
    """Trigger a run and wait for it. Returns the run and its duration in seconds by the scheduler's timestamps."""
    run = api.trigger(DAG, conf, f"bench__{time.time_ns()}_{number}")
    deadline = time.monotonic() + overhead.DEADLINE_S
    while not run.state.ended:
        assert time.monotonic() < deadline, "the run does not end"
        time.sleep(1)
        run = api.dag_run(run.dag_id, run.run_id)
    assert run.end_date is not None
    assert run.queued_at is not None
    return run, (run.end_date - run.queued_at).total_seconds()


def critical_path(tasks: list[TaskInstance]) -> list[TaskInstance]:
    """Tasks on the critical path: from the last task backwards, the predecessor that ended last."""
    done = [task for task in tasks if task.start_date and task.end_date]
    path = [max(done, key=lambda task: task.end_date)]  # type: ignore[arg-type, return-value]
    while earlier := [task for task in done if task.end_date <= path[-1].start_date]:  # type: ignore[operator]
        path.append(max(earlier, key=lambda task: task.end_date))  # type: ignore[arg-type, return-value]
    return path[::-1]


def parts_of(task: TaskInstance, before: datetime, logs: Path, commands: dict[str, float]) -> dict[str, float]:
    """Breakdown of a task on the critical path, in seconds."""
    assert task.start_date is not None
    assert task.end_date is not None
    stamps = log_stamps(logs, task)
    begun, drawn = stamps.get("::group::Pre Execute"), stamps.get("Worker startup parse complete")
    start = (begun - task.start_date).total_seconds() if begun else 0.0
    graph = (drawn - begun).total_seconds() if begun and drawn else 0.0
    working = commands.get(task.task_id.rpartition(".")[2], 0.0)
    whole = (task.end_date - task.start_date).total_seconds()
    return {
        "queue": (task.start_date - before).total_seconds(),
        "process start": start,
        "graph": graph,
        "commands on the node": min(working, whole),
        "ours": max(0.0, whole - start - graph - working),
    }


def log_stamps(logs: Path, task: TaskInstance) -> dict[str, datetime]:
    """Event -> time of its first log line in the task's first attempt."""
    folder = logs / f"dag_id={task.dag_id}" / f"run_id={task.run_id}" / f"task_id={task.task_id}"
    if task.map_index >= 0:
        folder /= f"map_index={task.map_index}"
    stamps: dict[str, datetime] = {}
    for line in (folder / "attempt=1.log").read_text().splitlines():
        reported = json.loads(line)
        stamps.setdefault(str(reported["event"]), datetime.fromisoformat(reported["timestamp"]))
    return stamps


def commands_of(store: Store, run: str) -> dict[str, float]:
    """Kind of step -> duration of its commands on the slowest node."""
    kinds = {step.id: step.kind.value for step in store.plans.get(run).steps}
    took: dict[str, float] = defaultdict(float)
    for attempt in store.attempts.of(run):
        longest = max((record.duration_s for record in attempt.records), default=0.0)
        took[kinds[attempt.step]] += longest
    return took


def memory(stack: Stack) -> dict[str, float]:
    """Component -> proportional set size of its processes, MiB. Jobs that have ended (migrations) are left out."""
    found: dict[str, float] = {}
    for name, pid in stack.pids.items():
        group = _session(Path(f"/proc/{pid}"))
        if group == -1:
            continue
        members = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _session(p) == group]
        found[name] = sum(_pss(member) for member in members)
    return found


def _session(process: Path) -> int:
    try:
        return os.getsid(int(process.name))
    except (OSError, ValueError):
        return -1


def _pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))


def main() -> None:
    """Run the rounds, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", type=Path, default=ROOT / ".tipcflow" / "bench-airflow")
    options = parser.parse_args()
    python = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
    series: dict[str, list[float]] = {"shell loop": [], "Airflow": []}
    tables = []
    with (
        local_nodes(options.home, python=python) as nodes,
        airflow_stack(
            options.home,
            dags=ROOT / "dags",
            plugins=ROOT / "plugins",
            configs=ROOT / "configs",
            connections=connections_env(nodes.cluster),
            report=print,
        ) as stack,
        Airflow(stack.url, user=stack.user, password=stack.password) as api,
    ):
        cluster = nodes.write_cluster_file(nodes.folder / "cluster.yaml")
        deadline = time.monotonic() + 120
        while DAG not in {dag.dag_id for dag in api.dags()}:
            assert time.monotonic() < deadline, api.import_errors()
            time.sleep(1)
        conf = {"mode": overhead.MODE, "cluster": str(cluster), "seed": 0}
        for number in range(options.rounds + 1):
            run, took = run_chain(api, conf, number)
            with Store.open(f"sqlite:///{options.home / 'tipcflow.db'}") as store:
                finished, plan = store.runs.get(run.run), store.plans.get(run.run)
                commands = commands_of(store, run.run)
            assert finished.status == "pass", finished.reason
            if number == 0:  # the first run makes the database and warms caches
                print(f"first run: {took:.1f} s", flush=True)
                continue
            path = critical_path(api.task_instances(run.dag_id, run.run_id))
            tables.append(spent(run, path, stack.airflow_home / "logs", commands))
            series["Airflow"].append(took)
            series["shell loop"].append(loop(plan, nodes, number))
            print(f"round {number}: loop {series['shell loop'][-1]:.1f} s, Airflow {took:.1f} s", flush=True)
        used = memory(stack)
    report(series, tables, used)


def loop(plan: Plan, nodes: Any, number: int) -> float:
    """Seconds of the plan's commands in a shell loop."""
    roots = overhead.unpack(nodes.cluster, number)
    return overhead.timed(["bash", "-c", overhead.loop_of_plan(plan, nodes.cluster, roots)])


def spent(run: DagRun, path: list[TaskInstance], logs: Path, commands: dict[str, float]) -> dict[str, Any]:
    """Task -> part -> seconds, along the critical path of one run."""
    before, table = run.queued_at, {}
    for task in path:
        assert before is not None
        table[task.task_id.rpartition(".")[2]] = parts_of(task, before, logs, commands)
        before = task.end_date
    return table


def report(series: dict[str, list[float]], tables: list[dict[str, Any]], used: dict[str, float]) -> None:
    """The tables and benchmarks/results/airflow_latency.json."""
    pairs = list(zip(series["Airflow"], series["shell loop"], strict=True))
    rows = {**series, "difference": [a - b for a, b in pairs], "ratio": [a / b for a, b in pairs]}
    print(f"\n{'seconds':<16}{'min':>8}{'median':>8}{'max':>8}")
    for label, values in rows.items():
        print(f"{label:<16}{min(values):>8.2f}{statistics.median(values):>8.2f}{max(values):>8.2f}")
    print(f"\n{'critical path, median s':<26}" + "".join(f"{part:>22}" for part in PARTS))
    totals = dict.fromkeys(PARTS, 0.0)
    medians: dict[str, dict[str, float]] = {}
    for task in tables[0]:
        found = [table[task] for table in tables if task in table]
        medians[task] = {part: statistics.median(one[part] for one in found) for part in PARTS}
        print(f"{task:<26}" + "".join(f"{medians[task][part]:>22.2f}" for part in PARTS))
        for part in PARTS:
            totals[part] += medians[task][part]
    print(f"{'all':<26}" + "".join(f"{totals[part]:>22.2f}" for part in PARTS))
    print("\nmemory, MiB (proportional): " + ", ".join(f"{name} {value:.0f}" for name, value in used.items()))
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    facts = {
        "unit": "s",
        "cores": os.cpu_count(),
        "rows": rows,
        "critical_path": medians,
        "memory_mib": used,
    }
    (results / "airflow_latency.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
