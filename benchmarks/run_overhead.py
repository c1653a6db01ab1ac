"""Overhead of `tipcflow run` on top of the commands that it runs.

The lite fleet chain of the sample suite, once through `tipcflow run` and once as the plan's exact commands in a
plain bash loop over ssh, on the same two nodes, in turn. With TIPC_BASH=<path of a suite's
test_train_inference_python.sh> the loop starts that script on both nodes instead.

Prints a table and writes benchmarks/results/run_overhead.json.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

from devcluster.local_nodes.nodes import local_nodes
from tipcflow.domain import Cluster, Node, Plan, Step

ROOT = Path(__file__).resolve().parent.parent
SUITE = ROOT / "examples" / "mobilenet_v3_small"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"
SHORT_PARAMS = "test_tipc/configs/mobilenet_v3_small/train_fleet_infer_python.txt"
MODE = "lite_train_lite_infer"
DEADLINE_S = 900


def ssh(node: Node, command: str) -> str:
    """The ssh client's command line for a remote command, quoted for bash."""
    target = node.ssh
    words = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={target.known_hosts}"]
    words += ["-i", target.identity_file, "-p", str(target.port), f"{target.user}@{target.host}", command]
    return shlex.join(words)


def remote(node: Node, root: str, text: str, env: dict[str, str]) -> str:
    """`cd root; environment; command`, as a user would type it."""
    settings = " ".join(f"{key}={shlex.quote(value)}" for key, value in {**node.env, **env}.items() if value)
    return f"cd {shlex.quote(root)} && export PATH={root}-bin:$PATH {settings} && {text}"


def loop_of_plan(plan: Plan, cluster: Cluster, roots: dict[str, str]) -> str:
    """A bash script with the plan's commands: nodes of a step in parallel, steps and legs sequentially."""
    lines = ["set -u"]
    for step in plan.steps:
        lines += loop_of_step(step, cluster, roots)
    return "\n".join(lines) + "\n"


def loop_of_step(step: Step, cluster: Cluster, roots: dict[str, str]) -> list[str]:
    """The lines of one step."""
    lines = []
    for name, command in step.commands.items():
        node = cluster.node(name)
        lines.append(f"{ssh(node, remote(node, roots[name], command.text, command.env))} &")
    for leg in step.legs:
        if leg.not_run:
            continue
        node = cluster.node(step.nodes[0])
        lines.append(ssh(node, remote(node, roots[node.name], leg.command.text, leg.command.env)))
    if step.commands:
        lines.append("wait")
    return lines


def loop_of_script(script: str, cluster: Cluster, roots: dict[str, str]) -> str:
    """A bash script that starts a suite's own script on every node, as TIPC documents.

    The manual preparation is included: the script and its helpers into test_tipc/, the addresses into
    the params file, and the variables that make Paddle's launcher take CPU processes for devices.
    """
    folder = shlex.quote(str(Path(script).resolve().parent))
    name = shlex.quote(f"test_tipc/{Path(script).name}")
    addresses = ",".join(node.address for node in cluster.nodes)
    env = {"CUDA_VISIBLE_DEVICES": "0,1", "PADDLE_DISTRI_BACKEND": "gloo"}
    lines = []
    for node in cluster.nodes:
        text = (
            f"cp {folder}/*.sh test_tipc/ && sed -i 's/^gpu_list:.*/gpu_list:{addresses};0,1/' {SHORT_PARAMS} && "
            f"bash test_tipc/prepare.sh {SHORT_PARAMS} {MODE} && bash {name} {SHORT_PARAMS} {MODE}"
        )
        lines.append(f"{ssh(node, remote(node, roots[node.name], text, env))} &")
    return "\n".join([*lines, "wait"]) + "\n"


def unpack(cluster: Cluster, round_number: int) -> dict[str, str]:
    """A fresh copy of the suite on every node, not timed. Returns node name -> folder."""
    roots = {}
    for node in cluster.nodes:
        root = f"{node.workspace}/loop-{round_number}"
        shim = f'#!/bin/sh\nexec {node.python} "$@"\n'
        names = " ".join(f"{root}-bin/{name}" for name in ("python", "python3", "python3.7"))
        commands = (
            f"rm -rf {root} {root}-bin; mkdir -p {root} {root}-bin && tar -x -C {root} && "
            f"for f in {names}; do printf %s {shlex.quote(shim)} > $f; chmod 755 $f; done"
        )
        tar = subprocess.run(["tar", "-c", "-C", str(SUITE), "."], capture_output=True, check=True).stdout
        subprocess.run(shlex.split(ssh(node, commands)), input=tar, check=True, timeout=60)
        roots[node.name] = root
    return roots


def timed(command: list[str], env: dict[str, str] | None = None) -> float:
    """Wall seconds of a command that must succeed."""
    begun = time.monotonic()
    done = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    took = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} failed with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return took


def main() -> None:
    """Run the rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", type=Path, default=ROOT / ".tipcflow" / "bench")
    rounds = parser.parse_args().rounds
    home = parser.parse_args().home
    script = os.environ.get("TIPC_BASH", "")
    params = SHORT_PARAMS if script else PARAMS
    python = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
    tipcflow = str(Path(sys.executable).with_name("tipcflow"))
    ours, loop = [], []
    with local_nodes(home, python=python) as nodes:
        cluster_file = home / "bench.yaml"
        nodes.write_cluster_file(cluster_file)
        arguments = [params, "--suite", "mobilenet_v3_small", "--mode", MODE, "--cluster", str(cluster_file)]
        env = {**os.environ, "TIPCFLOW_HOME": str(home)}
        reported = subprocess.run(
            [tipcflow, "plan", *arguments, "--json"], capture_output=True, check=True, env=env, cwd=ROOT
        )
        plan = Plan.model_validate_json(reported.stdout)
        for number in range(rounds):
            roots = unpack(nodes.cluster, number)
            text = (
                loop_of_script(script, nodes.cluster, roots)
                if script
                else loop_of_plan(plan, nodes.cluster, roots)
            )
            loop.append(timed(["bash", "-c", text]))
            ours.append(timed([tipcflow, "run", *arguments], env))
            print(f"round {number + 1}: loop {loop[-1]:.1f} s, tipcflow run {ours[-1]:.1f} s", flush=True)
    report(ours, loop, "suite's script" if script else "shell loop")


def report(ours: list[float], loop: list[float], name: str) -> None:
    """The table and benchmarks/results/run_overhead.json."""
    differences = [a - b for a, b in zip(ours, loop, strict=True)]
    ratios = [a / b for a, b in zip(ours, loop, strict=True)]
    rows = {name: loop, "tipcflow run": ours, "difference": differences, "ratio": ratios}
    print(f"\n{'':<16}{'min':>8}{'median':>8}{'max':>8}")
    for label, values in rows.items():
        print(f"{label:<16}{min(values):>8.2f}{statistics.median(values):>8.2f}{max(values):>8.2f}")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    facts = {"unit": "s", "cores": os.cpu_count(), "peer": name, "rows": rows}
    (results / "run_overhead.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
