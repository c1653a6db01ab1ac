"""Cost of reading and planning params files.

`tipcflow plan --batch` over all records of TIPC_ORACLE (or of --records, a folder of *.jsonl.gz): records per s,
start of the process included; and CPU seconds of parse and spec plan of 1,000 files, in this process.
Without records the sample files of the tests stand in.

Prints a table and writes benchmarks/results/plan_batch.json.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from tipcflow.domain import Compat, ConfigError
from tipcflow.plan import build_plan

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ROOT / "tests" / "golden" / "plan" / "inputs"
MODE = "lite_train_lite_infer"
FILES = 1000
AIM_S = 3.0


def records_of(folder: Path | None) -> list[dict[str, Any]]:
    """Records with all fields, or records generated from the tests' sample files."""
    if folder is not None:
        found: list[dict[str, Any]] = []
        for path in sorted(folder.glob("*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                found += [json.loads(line) for line in lines]
        return [record for record in found if record.get("mode")]
    dialects = {"norm_fleet": "models/template", "short_fleet": "models/mobilenetv3_prod"}
    sample = [
        {
            "suite": "models",
            "dialect_name": dialect,
            "config": f"{name}.txt",
            "mode": MODE,
            "variant": "files",
            "config_text": (INPUTS / f"{name}.txt").read_text(),
        }
        for name, dialect in dialects.items()
    ]
    return list(islice(cycle(sample), 2 * FILES))


def batch_seconds(records: list[dict[str, Any]]) -> float:
    """Wall seconds of one `tipcflow plan --batch`, which must return a result for every record."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        command = [
            str(Path(sys.executable).with_name("tipcflow")),
            "plan",
            "--batch",
            str(path),
            "--compat",
            "bash",
        ]
        begun = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        took = time.monotonic() - begun
    if done.returncode != 0 or len(done.stdout.splitlines()) != len(records):
        sys.exit(f"--batch failed with {done.returncode}:\n{done.stderr}")
    return took


def plan_cpu_seconds(records: list[dict[str, Any]], count: int = FILES) -> float:
    """CPU seconds to parse and plan `count` files (spec), different ones as far as available."""
    files = {(r["dialect_name"], r["config"]): r for r in records if "family" not in r and "mutation" not in r}
    begun = time.process_time()
    for record in islice(cycle(files.values()), count):
        try:
            build_plan(
                record["config_text"],
                file=record["config"],
                suite=record["suite"],
                chain="c",
                dialects=[record["dialect_name"]],
                mode=MODE,
                compat=Compat.SPEC,
            )
        except ConfigError:
            continue  # a refused file was read, too
    return time.process_time() - begun


def main() -> None:
    """Run the rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=Path, default=os.environ.get("TIPC_ORACLE") or None)
    options = parser.parse_args()
    records = records_of(options.records)
    batch, cpu = [], []
    for number in range(options.rounds):
        batch.append(batch_seconds(records))
        cpu.append(plan_cpu_seconds(records))
        print(f"round {number + 1}: batch {batch[-1]:.2f} s, 1,000 files {cpu[-1]:.2f} s of CPU", flush=True)
    report(len(records), batch, cpu)


def report(count: int, batch: list[float], cpu: list[float]) -> None:
    """The table and benchmarks/results/plan_batch.json."""
    rows = {
        "batch, wall s": batch,
        "records/s": [count / seconds for seconds in batch],
        "1,000 files, CPU s": cpu,
    }
    print(f"\n{count} records\n{'':<20}{'min':>9}{'median':>9}{'max':>9}")
    for label, values in rows.items():
        print(f"{label:<20}{min(values):>9.2f}{statistics.median(values):>9.2f}{max(values):>9.2f}")
    within = statistics.median(cpu) <= AIM_S
    print(f"goal: 1,000 files in at most {AIM_S:.0f} s of CPU: {'met' if within else 'missed'}")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    facts = {"records": count, "cores": os.cpu_count(), "aim_s": AIM_S, "rows": rows}
    (results / "plan_batch.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
