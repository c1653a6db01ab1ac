"""Overhead of `tipcflow scaling run` on top of the commands that it runs.

The sample suite on several topologies of two nodes, once through `tipcflow scaling run` and once as the plans'
exact commands in a plain bash loop over ssh, on the same nodes, in turn.

Prints a table and writes benchmarks/results/scaling_overhead.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from run_overhead import ROOT, loop_of_plan, timed, unpack

from devcluster.local_nodes.nodes import local_nodes
from tipcflow.domain import Plan
from tipcflow.domain.run.names import DeviceWord
from tipcflow.parse.scaling.topologies import read_topology

SUITE = "mobilenet_v3_small_benchmark"
PARAMS = "test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
BATCH = 4
TOPOLOGIES = ("1n1g", "2n1g")
GOAL = 1.10


def planned(tipcflow: str, topology: str, repeats: int, cluster: Path, env: dict[str, str]) -> Plan:
    """The plan of a topology's run, as `tipcflow scaling run` makes it."""
    where = read_topology(topology)
    case = f"dynamic_bs{BATCH}_fp32_DP_{DeviceWord(where.nodes, where.devices)}"
    command = [tipcflow, "plan", PARAMS, "--suite", SUITE, "--cluster", str(cluster), "--json"]
    command += ["--mode", f"benchmark_train:{case}", "--repeats", str(repeats)]
    done = subprocess.run(command, capture_output=True, check=True, env=env, cwd=ROOT)
    return Plan.model_validate_json(done.stdout)


def main() -> None:
    """Run the rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="trainings of 150 iterations per topology")
    parser.add_argument("--home", type=Path, default=ROOT / ".tipcflow" / "bench")
    given = parser.parse_args()
    python = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
    tipcflow = str(Path(sys.executable).with_name("tipcflow"))
    env = {**os.environ, "TIPCFLOW_HOME": str(given.home)}
    ours, loop = [], []
    with local_nodes(given.home, python=python) as nodes:
        cluster = given.home / "bench.yaml"
        nodes.write_cluster_file(cluster)
        plans = [planned(tipcflow, topology, given.repeats, cluster, env) for topology in TOPOLOGIES]
        command = [tipcflow, "scaling", "run", PARAMS, "--suite", SUITE, "--cluster", str(cluster)]
        command += ["--batch-size-per-device", str(BATCH), "--repeats", str(given.repeats)]
        command += [word for topology in TOPOLOGIES for word in ("--topology", topology)]
        for number in range(given.rounds):
            roots = unpack(nodes.cluster, number)
            text = "\n".join(loop_of_plan(plan, nodes.cluster, roots) for plan in plans)
            loop.append(timed(["bash", "-c", text]))
            ours.append(timed(command, env))
            print(f"round {number + 1}: loop {loop[-1]:.1f} s, scaling run {ours[-1]:.1f} s", flush=True)
    report(ours, loop, given.repeats)


def report(ours: list[float], loop: list[float], repeats: int) -> None:
    """The table and benchmarks/results/scaling_overhead.json."""
    differences = [a - b for a, b in zip(ours, loop, strict=True)]
    ratios = [a / b for a, b in zip(ours, loop, strict=True)]
    rows = {"shell loop": loop, "scaling run": ours, "difference": differences, "ratio": ratios}
    print(f"\n{'':<16}{'min':>8}{'median':>8}{'max':>8}")
    for label, values in rows.items():
        print(f"{label:<16}{min(values):>8.2f}{statistics.median(values):>8.2f}{max(values):>8.2f}")
    median = statistics.median(ratios)
    print(f"goal: ratio at most {GOAL:.2f}: {'met' if median <= GOAL else 'missed'}")
    facts = {
        "unit": "s",
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "topologies": TOPOLOGIES,
        "repeats": repeats,
        "goal": GOAL,
        "rows": rows,
    }
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "scaling_overhead.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
