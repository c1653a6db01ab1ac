"""Utilization of eight nodes by sixteen chains of one long step, with `tipcflow run` and with Airflow.

Every chain trains for some seconds on one node and does nothing else; two chains want each node. What is reported
is sixteen times a single run, as a suite's CI would take that does one after the other, over the time that all
sixteen took together. The single run is measured in the same way, right before.

Prints a table and writes benchmarks/results/makespan.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.airflow_api import Airflow, DagRun
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.store import Store

ROOT = Path(__file__).resolve().parent.parent
NODES, CHAINS = 8, 16
MODE = "lite_train_lite_infer"
TOY = ROOT / "tests" / "support" / "toy_suite"
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"
CONF = {"suite": "toy", "params_file": "toy/train_infer_python.txt", "mode": MODE}
# Reduces the toy suite's chain to one step on one node.
EDITS = (
    ("gpu_list:192.168.0.1,192.168.0.2;0,1", "gpu_list:0"),
    ("eval:train.py --test-only", "eval:null"),
    ("norm_export:tools/export_model.py", "norm_export:null"),
    ("inference:deploy/infer.py", "inference:null"),
)


class Place:
    """A home with configs, sixteen params files, and a cluster file for each node."""

    def __init__(self, folder: Path, nodes: LocalNodes, seconds: float) -> None:
        self.home, self.configs, self.suite = folder / "home", folder / "configs", folder / "toy"
        subprocess.run(["cp", "-r", str(TOY), str(self.suite)], check=True)
        subprocess.run(["mkdir", "-p", str(self.configs)], check=True)
        subprocess.run(["cp", "-r", str(ROOT / "configs" / "policies"), str(self.configs)], check=True)
        (self.configs / "suites").mkdir()
        settings = {"name": "toy", "folder": str(self.suite), "dialects": ["models/template"], "framework": ""}
        (self.configs / "suites" / "toy.yaml").write_text(yaml.safe_dump(settings))
        text = (self.suite / PARAMS).read_text()
        # A toy training has ten iterations.
        for old, new in (*EDITS, ("norm_train:train.py", f"norm_train:train.py --step-time {seconds / 10:g}")):
            assert old in text, old
            text = text.replace(old, new, 1)
        (self.suite / PARAMS).write_text(text)
        whole = yaml.safe_load(nodes.write_cluster_file(self.configs / "clusters" / "all.yaml").read_text())
        for node in whole["nodes"]:
            one = {**whole, "name": node["name"], "nodes": [node]}
            (self.configs / "clusters" / f"{node['name']}.yaml").write_text(yaml.safe_dump(one))
        self.names = [node["name"] for node in whole["nodes"]]

    @property
    def env(self) -> dict[str, str]:
        """Environment variables of every command."""
        return {**os.environ, "TIPCFLOW_HOME": str(self.home), "TIPCFLOW_CONFIG_DIR": str(self.configs)}

    def clusters(self, count: int) -> Iterator[str]:
        """The cluster of each chain."""
        return (self.names[number % len(self.names)] for number in range(count))

    def runs(self) -> list[str]:
        """Reasons of runs that did not pass."""
        with Store.open(f"sqlite:///{self.home / 'tipcflow.db'}") as store:
            return [f"{run.status}: {run.reason}" for run in store.runs.newest(limit=100) if run.status != "pass"]


def with_cli(place: Place, count: int) -> float:
    """Seconds from first start to last end."""
    begun = time.monotonic()
    tipcflow = str(Path(sys.executable).with_name("tipcflow"))
    command = [tipcflow, "run", PARAMS, "--suite", "toy", "--mode", MODE, "--cluster"]
    started = [
        subprocess.Popen([*command, name], env=place.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in place.clusters(count)
    ]
    for process in started:
        process.wait()
    took = time.monotonic() - begun
    assert not place.runs(), place.runs()
    return took


def in_airflow(place: Place, api: Airflow, count: int) -> float:
    """Seconds from first trigger to last end."""
    begun = time.monotonic()
    runs = [
        api.trigger("certify", {**CONF, "cluster": name}, f"bench__{time.time_ns()}")
        for name in place.clusters(count)
    ]
    while runs:
        time.sleep(1)
        runs = [run for run in (_now(api, run) for run in runs) if not run.state.ended]
    took = time.monotonic() - begun
    assert not place.runs(), place.runs()
    return took


def _now(api: Airflow, run: DagRun) -> DagRun:
    return api.dag_run(run.dag_id, run.run_id)


@contextmanager
def airflow(place: Place, nodes: LocalNodes) -> Iterator[Airflow]:
    """A real Airflow with the chains of this place."""
    (place.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    with ExitStack() as stack:
        made = stack.enter_context(
            airflow_stack(
                place.home,
                dags=ROOT / "dags",
                plugins=ROOT / "plugins",
                configs=place.configs,
                connections=connections_env(nodes.cluster),
            )
        )
        api = stack.enter_context(Airflow(made.url, user=made.user, password=made.password))
        deadline = time.monotonic() + 120
        while "certify" not in {dag.dag_id for dag in api.dags()}:
            assert time.monotonic() < deadline, api.import_errors()
            time.sleep(1)
        yield api


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="training time of each chain")
    parser.add_argument("--way", choices=("cli", "airflow", "both"), default="both")
    options = parser.parse_args()
    results = ROOT / "benchmarks" / "results" / "makespan.json"
    rows: dict[str, Any] = json.loads(results.read_text())["rows"] if results.is_file() else {}
    names = tuple(f"n{number}" for number in range(NODES))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tipcflow-makespan-")))
        nodes = stack.enter_context(local_nodes(folder / "nodes", names=names, slots=1))
        place = Place(folder, nodes, options.seconds)
        if options.way in ("cli", "both"):
            with_cli(place, 0)
            rows["tipcflow run"] = row(options.seconds, with_cli(place, 1), with_cli(place, CHAINS))
        if options.way in ("airflow", "both"):
            with airflow(place, nodes) as api:
                rows["Airflow"] = row(options.seconds, in_airflow(place, api, 1), in_airflow(place, api, CHAINS))
    print(f"\n{'':<14}{'step s':>8}{'one run s':>11}{'16 runs s':>11}{'speed-up':>10}{'load':>6}")
    for name, one in rows.items():
        print(f"{name:<14}{one['step']:>8.0f}{one['one']:>11.1f}{one['all']:>11.1f}", end="")
        print(f"{one['speed_up']:>10.2f}{one['load']:>6.1f}")
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({"unit": "s", "cores": os.cpu_count(), "rows": rows}, indent=1) + "\n")


def row(step: float, one: float, everything: float) -> dict[str, float]:
    """Reported values of one front end."""
    return {
        "step": step,
        "one": one,
        "all": everything,
        "speed_up": CHAINS * one / everything,
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    main()
