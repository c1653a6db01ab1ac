"""Seconds from an opened pull request to the first training process, on free nodes.

A real Airflow on two local nodes; a stand-in for GitHub sends signed deliveries to the real webhook. Each round
opens a new head of the pull request, and starts the same chain through Airflow's REST API, as a workflow of GitHub
Actions does with `tipcflow trigger`; the order alternates. A round ends when the first training process is on a
node; then its run is certified to the end, so that the nodes are free again.

Prints a table and writes benchmarks/results/first_step.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.support.certify import wait_for  # noqa: E402
from tests.support.github.deployment import RUN_S, Deployment, deploying  # noqa: E402
from tests.support.scheduler import DAG  # noqa: E402

from devcluster.local_nodes.nodes import local_nodes  # noqa: E402
from tipcflow.domain import Status  # noqa: E402
from tipcflow.github.trust import RunKey  # noqa: E402

GOAL_S = 20.0
POLL_S = 0.1
DEADLINE_S = 180.0
# Where the time goes: task or event -> seconds since the delivery.
Marks = dict[str, float]


def main() -> None:
    """Run the rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    took: dict[str, list[float]] = {"pull request": [], "REST API": []}
    marks: list[Marks] = []
    python = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
    with (
        tempfile.TemporaryDirectory(prefix="tipcflow-first-step-") as folder,
        local_nodes(Path(folder) / "nodes", python=python) as nodes,
    ):
        (Path(folder) / "site").mkdir()
        with deploying(Path(folder) / "site", nodes) as deployed:
            for number in range(rounds + 1):
                ways = [pull_request, rest] if number % 2 else [rest, pull_request]
                seconds = {}
                for way in ways:
                    seconds[way], parts = way(deployed)
                    if number and parts:
                        marks.append(parts)
                if number:  # the first round fills caches
                    took["pull request"].append(seconds[pull_request])
                    took["REST API"].append(seconds[rest])
                print(f"round {number}: {seconds[pull_request]:.1f} s, {seconds[rest]:.1f} s", flush=True)
    show(took, marks)


def pull_request(deployed: Deployment) -> tuple[float, Marks]:
    """Open a new head, wait for its training; seconds, and when the tasks before it started."""
    sha = deployed.push()
    began, started = time.monotonic(), time.time()
    deployed.pull_request("opened")
    stored = time.monotonic() - began
    seconds = until_training(deployed, began)
    deployed.until(sha, lambda check: check.get("status") == "completed", "the verdict")
    assert deployed.status(sha) is Status.PASS, deployed.check(sha)
    run = RunKey("o/r", 7, sha, 1).run_id
    dag = deployed.scheduler.api.dag_run(DAG, run)
    marks = {"delivery stored": stored}
    assert dag.queued_at is not None
    marks["chain queued"] = dag.queued_at.timestamp() - started
    for task in deployed.scheduler.api.task_instances(DAG, run):
        name = task.task_id.rpartition(".")[2]
        if task.start_date is not None and task.start_date.timestamp() - started < seconds:
            marks.setdefault(f"task {name}", task.start_date.timestamp() - started)
    return seconds, {**marks, "training process": seconds}


def rest(deployed: Deployment) -> tuple[float, Marks]:
    """Start the chain through Airflow's REST API and wait for its training."""
    began = time.monotonic()
    run = deployed.scheduler.start()
    seconds = until_training(deployed, began)
    done = deployed.scheduler.ended(run, RUN_S)
    assert deployed.scheduler.run_of(done).status is Status.PASS, deployed.scheduler.run_of(done).reason
    return seconds, {}


def until_training(deployed: Deployment, began: float) -> float:
    """Seconds from `began` to the first training process on a node."""
    is_there: Callable[[], bool] = lambda: any(map(deployed.site.training_runs_on, ("a", "b")))  # noqa: E731
    while not is_there():
        assert time.monotonic() - began < DEADLINE_S, "no training starts"
        time.sleep(POLL_S)
    seconds = time.monotonic() - began
    wait_for(lambda: not is_there(), what="the end of the training", seconds=RUN_S)
    return seconds


def show(took: dict[str, list[float]], marks: list[Marks]) -> None:
    """The table and benchmarks/results/first_step.json."""
    ratios = [a / b for a, b in zip(took["pull request"], took["REST API"], strict=True)]
    print(f"\n{'seconds to the first training process':<40}{'median':>8}{'min':>8}{'max':>8}")
    for name, values in {**took, "ratio": ratios}.items():
        print(f"{name:<40}{statistics.median(values):>8.2f}{min(values):>8.2f}{max(values):>8.2f}")
    print(f"goal for a pull request: {GOAL_S:.0f} s")
    medians = {
        name: statistics.median([one[name] for one in marks if name in one])
        for name in dict.fromkeys(name for one in marks for name in one)
    }
    print("\nseconds since the delivery, median")
    for name, value in sorted(medians.items(), key=lambda item: item[1]):
        print(f"{name:<40}{value:>8.2f}")
    results = ROOT / "benchmarks" / "results" / "first_step.json"
    results.parent.mkdir(exist_ok=True)
    facts = {"unit": "s", "cores": os.cpu_count(), "rows": {**took, "ratio": ratios}, "marks": medians}
    results.write_text(json.dumps({**facts, "load": os.getloadavg()[0]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
