"""Cost of `tipcflow detect`: 10,000 series of 104 points with five samples, all kinds of noise, half stepped.

    python benchmarks/detection/speed.py [--count 10000]

CPU seconds of one process (user and system): on a machine with other work wall time is useless. Reading the file
and starting Python are part of it.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generate import POINTS, SETTINGS, cases

from tipcflow.check.detect import Series

# Five samples around a median, relative to it.
SAMPLES = (-0.004, -0.001, 0.0, 0.002, 0.003)


def measure(count: int = 10_000, policy: str = "weekly", seed: int = 1) -> dict[str, Any]:
    """Evaluate `count` series. Returns CPU seconds and peak memory in MB."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(_lines(count, seed))
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["tipcflow", "detect", "--series", file.name, "--policy", policy, "--json"]
        done = subprocess.run(
            [Path(sys.executable).with_name(command[0]), *command[1:]], capture_output=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        size = Path(file.name).stat().st_size
    assert done.stdout.count(b"\n") == count
    return {
        "series": count,
        "points": POINTS,
        "file_mb": round(size / 1e6),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "memory_mb": round(after.ru_maxrss / 1024),
    }


def _lines(count: int, seed: int) -> Iterator[str]:
    each = -(-count // (2 * len(SETTINGS)))
    made = 0
    for setting in SETTINGS:
        for step in (0.0, 0.03):
            for case in cases(setting, step=step, count=min(each, count - made), seed=seed):
                made += 1
                yield _line(case.series)


def _line(series: Series) -> str:
    direction = "higher" if series.higher_is_better else "lower"
    points = [
        {"run": f"{series.id}-{point.run}" if point.run.startswith("s") else point.run, "node": point.node}
        | {"samples": _samples(point.value), "confirm": _samples(point.confirm)}
        for point in series.points
    ]
    return json.dumps({"id": series.id, "unit": "s", "direction": direction, "points": points}) + "\n"


def _samples(value: float | None) -> list[float]:
    return [] if value is None else [value * (1 + one) for one in SAMPLES]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--policy", default="weekly")
    given = parser.parse_args()
    print(json.dumps(measure(given.count, given.policy)))


if __name__ == "__main__":
    sys.exit(main())
