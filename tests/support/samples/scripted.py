"""The measured training of the sample suite, started by a shell script of the suite on each node."""

from pathlib import Path

from tests.support.certify import Site
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes

PARAMS = "test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
SAMPLE, NAME = "mobilenet_v3_small", "mobilenet_v3_small_benchmark"
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


def scripted_site(folder: Path, nodes: LocalNodes) -> Site:
    """An installation with the sample suite, whose trainings of 12 iterations are started by `run_nodes.sh`."""
    changed = {"launch": "script", "seed_argument": None, "deterministic": None}
    made = sample_site(folder, nodes, NAME, sample=SAMPLE, **changed)
    (made.suite / "run_nodes.sh").write_text(SCRIPT)
    params = made.suite / PARAMS
    text = params.read_text().replace("max-iters:150", "max-iters:12")
    params.write_text(text.replace("norm_train:train.py --data-path=./lite_data", "norm_train:run_nodes.sh"))
    return made
