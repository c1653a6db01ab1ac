"""`tipcflow scaling run` with `launch: script`: a shell script of the suite starts the ranks of each node."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.scaling.test_topologies import LIMIT_S, NAME, PARAMS, SAMPLE
from tests.support.certify import TIPCFLOW, Site
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(LIMIT_S)]

SCRIPT = """#!/bin/bash
# run_nodes.sh MODEL BATCH PRECISION NODE... REPEAT, called on each node
set -euo pipefail
echo "arguments: $*"
model=$1 batch=$2 precision=$3 repeat=${!#}
nodes=("${@:4:$#-4}")
log=logs/bz$batch/${#nodes[@]}n${NPROC_PER_NODE}g/${model}_b${batch}_${precision}_$repeat.log
mkdir -p "${log%/*}"
training=(train.py --data-path=./lite_data --batch-size="$batch" --auto-cast="$precision" --max-iters=12)
if [ $((${#nodes[@]} * NPROC_PER_NODE)) = 1 ]; then
    python "${training[@]}" >"$log" 2>&1
else
    python -m paddle.distributed.launch --ips="$(IFS=,; echo "${nodes[*]}")" --host="${nodes[$NODE_RANK]}" \\
        --start_port="$MASTER_PORT" --nproc_per_node="$NPROC_PER_NODE" "${training[@]}"
    cp log/workerlog.0 "$log"
fi
"""


@pytest.fixture
def site(make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path) -> Site:
    """An installation with the sample suite, whose measured trainings are started by `run_nodes.sh`."""
    nodes = make_nodes(tmp_path / "nodes", python=node_python)
    changed = {"launch": "script", "seed_argument": None, "deterministic": None}
    made = sample_site(tmp_path / "site", nodes, NAME, sample=SAMPLE, **changed)
    (made.suite / "run_nodes.sh").write_text(SCRIPT)
    params = made.suite / PARAMS
    text = params.read_text().replace("max-iters:150", "max-iters:12")
    params.write_text(text.replace("norm_train:train.py --data-path=./lite_data", "norm_train:run_nodes.sh"))
    return made


def test_script_is_called_on_each_node_and_measured(site: Site, tmp_path: Path) -> None:
    command = [str(TIPCFLOW), "scaling", "run", PARAMS, "--suite", NAME, "--cluster", "local", "--json"]
    command += ["--batch-size-per-device", "4", "--repeats", "2", "--skip", "2", "--take", "10"]
    command += ["-t", "1n1g", "-t", "2n2g", "--plot", str(tmp_path / "scaling.png")]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    rows = result["models"]["mobilenet_v3_small"]
    assert {name: row["repeats"] for name, row in rows.items()} == {"1n1g": 2, "2n2g": 2}
    assert all(speed > 0 for row in rows.values() for speed in row["speeds"].values())
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
    assert site.left_behind() == []
    runs = {entry["topology"]: site.home / "runs" / entry["run"] for entry in result["topologies"]}
    calls = sorted(
        line.removeprefix("arguments: mobilenet_v3_small 4 fp32 ")
        for log in runs["2n2g"].rglob("logs/main.log")
        for line in log.read_text().splitlines()
        if line.startswith("arguments: ")
    )
    addresses = " ".join(node.address for node in site.nodes.cluster.nodes)
    assert calls == [f"{addresses} 1", f"{addresses} 1", f"{addresses} 2", f"{addresses} 2"]
    for topology, run in runs.items():
        logs = sorted(run.rglob(f"logs/bz4/{topology}/*.log"))
        assert {log.name for log in logs} == {f"mobilenet_v3_small_b4_fp32_{repeat}.log" for repeat in (1, 2)}
    read = [
        str(TIPCFLOW),
        "scaling",
        str(runs["1n1g"]),
        "--batch-size-per-device",
        "4",
        "--skip",
        "2",
        "--take",
        "10",
    ]
    table = subprocess.run([*read, "--json"], env=site.env, capture_output=True, text=True, check=True)
    assert json.loads(table.stdout)["models"]["mobilenet_v3_small"]["1n1g"]["repeats"] == 2
