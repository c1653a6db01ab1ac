"""Cost of a remote step in Airflow, compared with a stock SSHOperator that runs `echo` on the same node.

The steps are the toy chain's evaluation and export, whose commands take some hundredths of a second; the task of
each is a process that joins its attempt, starts a job, watches it, fetches its logs and stores its numbers. Rounds
of both in turn in one Airflow. Wall seconds are Airflow's own (a task's start to its end) less the command's on
the node; CPU seconds are those of the task's process and of all it waited for, and of its supervising worker.

Prints a table and writes benchmarks/results/step_overhead.json.
"""

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import makespan

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.airflow_api import Airflow, DagRun, TaskInstance
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.store import Store

ROOT = makespan.ROOT
ECHOS = 4
STEPS = ("eval", "export")
POLL_S = 0.02
TITLE = b"airflow worker -- "
TICKS = os.sysconf("SC_CLK_TCK")
ECHO_DAG = """
from airflow.providers.ssh.operators.ssh import SSHOperator
from airflow.sdk import DAG

with DAG("echo", schedule=None, is_paused_upon_creation=False):
    before = None
    for number in range({echos}):
        task = SSHOperator(task_id=f"echo{{number}}", ssh_conn_id="{connection}", command="echo")
        if before:
            before >> task
        before = task
"""


class Cpu(threading.Thread):
    """Samples all task processes frequently; the last sample is their total use.

    Attributes:
        used: task instance's id -> CPU seconds of its process and its children.
        beside: the same -> CPU seconds of the worker that supervises it, meanwhile.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.used: dict[str, float] = {}
        self.beside: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self.start()

    def run(self) -> None:
        """Sample until the process ends."""
        while True:
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    self._look(entry.path)
            time.sleep(POLL_S)

    def _look(self, path: str) -> None:
        try:
            words = Path(path, "cmdline").read_bytes().rstrip(b"\0")
            if not words.startswith(TITLE) or b" " in words[len(TITLE) :]:
                return
            task = words[len(TITLE) :].decode()
            fields = _fields(path)
            worker = _seconds(_fields(f"/proc/{fields[1]}"), own=True)
        except (OSError, IndexError, ValueError):
            return
        self._first.setdefault(task, worker)
        self.used[task] = _seconds(fields)
        self.beside[task] = worker - self._first[task]


def _fields(path: str) -> list[str]:
    return Path(path, "stat").read_text().rpartition(")")[2].split()


def _seconds(fields: list[str], *, own: bool = False) -> float:
    """User and system time, including waited-for children unless `own`."""
    return sum(int(number) for number in fields[11 : 13 if own else 15]) / TICKS


def run_dag(api: Airflow, dag_id: str, conf: dict[str, Any]) -> DagRun:
    """Trigger a run and wait for its end."""
    run = api.trigger(dag_id, conf, f"bench__{time.time_ns()}")
    deadline = time.monotonic() + 300
    while not run.state.ended:
        assert time.monotonic() < deadline, "the run does not end"
        time.sleep(0.5)
        run = api.dag_run(run.dag_id, run.run_id)
    assert run.state == "success", f"{run.dag_id} is {run.state}"
    return run


def ids(api: Airflow, stack: Any, run: DagRun) -> dict[str, str]:
    """Task -> the ID of its only attempt."""
    import httpx

    login = {"username": stack.user, "password": stack.password}
    token = httpx.post(f"{stack.url}/auth/token", json=login, timeout=30).json()["access_token"]
    path = f"{stack.url}/api/v2/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances"
    reported = httpx.get(path, headers={"Authorization": f"Bearer {token}"}, timeout=30).json()
    return {one["task_id"].rpartition(".")[2]: one["id"] for one in reported["task_instances"]}


def costs(
    tasks: list[TaskInstance], names: dict[str, str], cpu: Cpu, commands: dict[str, float], wanted: tuple[str, ...]
) -> list[dict[str, Any]]:
    """One row per selected task."""
    rows = []
    for task in tasks:
        name = task.task_id.rpartition(".")[2]
        if name.startswith(wanted) and task.duration is not None:
            key = names[name]
            wall = task.duration - commands.get(name, 0.0)
            rows.append({"task": name, "wall": wall, "cpu": cpu.used.get(key, 0.0) + cpu.beside.get(key, 0.0)})
    return rows


def on_the_node(home: Path, run: str) -> dict[str, float]:
    """Kind of step -> duration of its command in seconds."""
    with Store.open(f"sqlite:///{home / 'tipcflow.db'}") as store:
        kinds = {step.id: step.kind.value for step in store.plans.get(run).steps}
        tried = store.attempts.of(run)
    return {kinds[one.step]: max(record.duration_s for record in one.records) for one in tried if one.records}


def main() -> None:
    """Run the rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=4)
    rounds = parser.parse_args().rounds
    rows: list[dict[str, Any]] = []
    makespan.EDITS = makespan.EDITS[:1]  # the whole chain of the toy, on one node
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tipcflow-step-")))
        nodes = stack.enter_context(local_nodes(folder / "nodes", names=("n0",), slots=1))
        place = makespan.Place(folder, nodes, 0.1)
        made = stack.enter_context(stacked(folder, place, nodes))
        api = stack.enter_context(Airflow(made.url, user=made.user, password=made.password))
        deadline = time.monotonic() + 120
        while not {"certify", "echo"} <= {dag.dag_id for dag in api.dags()}:
            assert time.monotonic() < deadline, api.import_errors()
            time.sleep(1)
        cpu = Cpu()
        conf = {
            "suite": "toy",
            "params_file": "toy/train_infer_python.txt",
            "mode": makespan.MODE,
            "cluster": "n0",
        }
        for number in range(rounds + 1):
            found = []
            for dag, options, wanted in (("certify", conf, STEPS), ("echo", {}, ("echo",))):
                run = run_dag(api, dag, options)
                commands = on_the_node(place.home, run.run) if dag == "certify" else {}
                tasks = api.task_instances(run.dag_id, run.run_id)
                found += costs(tasks, ids(api, made, run), cpu, commands, wanted)
            print(f"round {number}{'' if number else ' (not counted)'}: {json.dumps(found)}", flush=True)
            rows += found if number else []
    report(rows)


def stacked(folder: Path, place: makespan.Place, nodes: LocalNodes) -> Any:
    """An Airflow with the chain DAGs and the echo DAG."""
    dags = folder / "dags"
    dags.mkdir()
    (dags / "certify.py").write_bytes((ROOT / "dags" / "certify.py").read_bytes())
    connection = nodes.cluster.nodes[0].connection
    (dags / "echo.py").write_text(ECHO_DAG.format(echos=ECHOS, connection=connection))
    (place.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    return airflow_stack(
        place.home, dags=dags, configs=place.configs, connections=connections_env(nodes.cluster), report=print
    )


def report(rows: list[dict[str, Any]]) -> None:
    """The table and benchmarks/results/step_overhead.json."""
    series = {
        "SSHOperator echo": [row for row in rows if row["task"].startswith("echo")],
        "our step": [row for row in rows if not row["task"].startswith("echo")],
    }
    middle = {
        name: {key: statistics.median(row[key] for row in mine) for key in ("wall", "cpu")}
        for name, mine in series.items()
    }
    ratio = {key: middle["our step"][key] / middle["SSHOperator echo"][key] for key in ("wall", "cpu")}
    load = os.getloadavg()[0]
    print(f"\nload {load:.1f}\n{'median s':<18}{'tasks':>7}{'wall':>8}{'cpu':>8}")
    for name, mine in series.items():
        print(f"{name:<18}{len(mine):>7}{middle[name]['wall']:>8.2f}{middle[name]['cpu']:>8.2f}")
    print(f"{'ratio':<25}{ratio['wall']:>8.2f}{ratio['cpu']:>8.2f}")
    facts = {"unit": "s", "cores": os.cpu_count(), "load": load, "median": middle, "ratio": ratio, "rows": rows}
    (ROOT / "benchmarks" / "results" / "step_overhead.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
