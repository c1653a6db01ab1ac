"""Cost of the framework probe in a training: CPU seconds of the same Paddle training with and without it, in turn.

MobileNetV3 small of paddle.vision, one thread, so that CPU time is comparable also on a machine under load. Prints
a table and writes benchmarks/results/probe_cost.json. Requires the node environment (`make install`).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tipcflow.remote.runner.stack_signal import collect, prepare

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
DEADLINE_S = 900
TRAIN = """
import sys, time
begin = time.process_time()
import paddle
net = paddle.vision.models.mobilenet_v3_small(num_classes=10)
momentum = paddle.optimizer.Momentum(0.01, parameters=net.parameters())
images, labels = paddle.rand([4, 3, 64, 64]), paddle.randint(0, 10, [4])
started = time.process_time()
for _ in range(int(sys.argv[1])):
    loss = paddle.nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    momentum.step()
    momentum.clear_grad()
    loss.item()
trained = time.process_time()
paddle.save(net.state_dict(), "weights.pdparams")
print("CPU", started - begin, trained - started, time.process_time() - trained)
"""


def measured(folder: str, steps: int, *, probe: bool) -> tuple[float, float, float]:
    """CPU seconds of the start, the steps and the saved weights."""
    env = {"PATH": os.environ["PATH"], "HOME": folder, "OMP_NUM_THREADS": "1"}
    prepare(env, f"{folder}/job", stacks=False, probe=probe)
    command = [str(PYTHON), "-c", TRAIN, str(steps)]
    done = subprocess.run(
        command, env=env, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("CPU "))
    start, train, save = map(float, line.split()[1:])
    return start, train, save


def main() -> None:
    """Measure pairs and print the difference of each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200)
    chosen = parser.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(chosen.pairs):
            # The order alternates: what drifts affects both.
            sides = {
                probe: measured(folder, chosen.steps, probe=probe) for probe in (number % 2 == 0, number % 2 == 1)
            }
            pairs.append((sides[False], sides[True]))
        (report,) = collect(f"{folder}/job")[:1]
    rows = {}
    for index, name in enumerate(("start", "steps", "save")):
        without = statistics.median(first[index] for first, _ in pairs)
        more = statistics.median(second[index] - first[index] for first, second in pairs)
        rows[name] = {"without_s": without, "more_s": more, "share": more / without}
    shares = [second[1] / first[1] - 1 for first, second in pairs]
    rows["steps"]["shares"] = sorted(shares)
    for name, row in rows.items():
        print(f"{name:6} {row['without_s']:8.3f} s  {row['more_s']:+8.4f} s  {row['share']:+7.2%}")
    result = {"pairs": chosen.pairs, "steps": chosen.steps, "framework": report["version"], "rows": rows}
    path = ROOT / "benchmarks" / "results" / "probe_cost.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
