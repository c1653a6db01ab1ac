"""How fast a Clas-style workerlog is read, on one core.

Ours (all fields typed: value, unit, phase, epoch, iteration, offset) against a plain loop over `key: value` parts,
one regular expression per line, and a findall over whole chunks into numpy. The peers read a part of the log, each
in a process of its own; peak memory is that of ours after the whole log. On a machine that others use too
the ratio to the loop is what counts: both read the same part in turns, several times, and the median is told.

Prints a table and writes benchmarks/results/parse_speed.json. `--mb 1000` is the size that the aim speaks of.
"""

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AIM_MB_S, AIM_RATIO, AIM_RSS_MB = 100.0, 3.0, 400
PEER_MB = 60
ROUNDS = 5
PIECE = 1 << 21


def lines(megabytes: int) -> Iterator[str]:
    """A training log of that size: 500 printed iterations an epoch, one evaluation after each."""
    rng = random.Random(2026)
    written, epoch = 0, 0
    while written < megabytes * 1e6:
        epoch += 1
        for step in range(0, 5000, 10):
            day, hour, minute, second = epoch % 28 + 1, step // 1000, step % 60, rng.randrange(60)
            at = f"[2022/05/{day:02} {hour:02}:{minute:02}:{second:02}] ppcls INFO: "
            loss = 7.0 / (1 + epoch / 10) * rng.uniform(0.9, 1.1)
            cost = rng.gauss(0.36, 0.01)
            line = (
                f"{at}[Train][Epoch {epoch}/600][Iter: {step}/5000]"
                f"lr(CosineAnnealingDecay): {0.1 - epoch * 1e-5:.8f}, top1: {rng.random():.5f}, "
                f"top5: {rng.random():.5f}, CELoss: {loss:.5f}, loss: {loss:.5f}, "
                f"batch_cost: {cost:.5f}s, reader_cost: {rng.random() / 100:.5f}, "
                f"ips: {256 / cost:.5f} samples/s, eta: {rng.randrange(30)}:{minute:02}:{second:02}, "
                "max_mem_reserved: 23140.00 MB, max_mem_allocated: 21817.33 MB\n"
            )
            written += len(line)
            yield line
        yield f"{at}[Train][Epoch {epoch}/600][Avg]top1: {rng.random():.5f}, loss: {loss:.5f}\n"
        yield f"{at}[Eval][Epoch {epoch}][Avg]CELoss: {loss:.5f}, loss: {loss:.5f}, top1: {rng.random():.5f}\n"


def ours(path: Path) -> int:
    """Samples, summed up as `tipcflow parse` does."""
    from tipcflow.parse.account import account_of

    with path.open("rb") as file:
        account = account_of(iter(lambda: file.read(PIECE), b""), "auto")
    return sum(summary.n for summary in account.series.values())


def loop(path: Path) -> int:
    """A dictionary of numbers for each line."""
    count = 0
    with path.open() as file:
        for line in file:
            found = {}
            for part in line.rpartition("]")[2].split(","):
                name, _, value = part.strip().partition(": ")
                try:
                    found[name] = float(value.split(" ")[0].rstrip("s"))
                except ValueError:
                    continue
            count += len(found)
    return count


_PAIR = re.compile(r"([\w()]+): ([-+\d.e]+)s?(?=[ ,\n])")


def regex(path: Path) -> int:
    """One regular expression for the pairs of each line."""
    count = 0
    with path.open() as file:
        for line in file:
            count += len([(name, float(value)) for name, value in _PAIR.findall(line)])
    return count


def findall(path: Path) -> int:
    """All numbers of a chunk by one findall, typed by numpy; the names are taken for granted."""
    import numpy as np

    pattern = re.compile(rb": (\d+\.\d+)")
    count, rest = 0, b""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            chunk, _, rest = (rest + piece).rpartition(b"\n")
            count += len(np.array(pattern.findall(chunk)).astype(np.float64))
    return count


READERS: dict[str, Callable[[Path], int]] = {
    "ours": ours, "key-value loop": loop, "regex per line": regex, "chunk findall": findall,
}  # fmt: skip


def measured(name: str, path: Path) -> dict[str, float]:
    """MB/s (of wall and of CPU time) and peak MB of a reader in a process of its own, on one core."""
    command = [sys.executable, __file__, "--reader", name, "--file", str(path)]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, env=env).stdout))


def one(name: str, path: Path) -> dict[str, float]:
    """What `measured` asks its process for."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    READERS[name](path.with_suffix(".tiny"))  # imports are not what is measured
    size, wall, cpu = path.stat().st_size / 1e6, time.perf_counter(), time.process_time()
    samples = READERS[name](path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"mb_s": size / wall, "cpu_mb_s": size / cpu, "peak_mb": peak, "samples": samples}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200, help="size of the log")
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.reader:
        print(json.dumps(one(chosen.reader, chosen.file)))
        return
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "workerlog.0", Path(folder) / "part.log"
        for path, size in ((whole, chosen.mb), (part, min(PEER_MB, chosen.mb))):
            with path.open("w") as file:
                file.writelines(lines(size))
            path.with_suffix(".tiny").write_text(
                "".join(line for line, _ in zip(lines(1), range(50), strict=False))
            )
        turns = [(measured("key-value loop", part), measured("ours", part)) for _ in range(ROUNDS)]
        found = {name: measured(name, whole if name == "ours" else part) for name in READERS}
    ratios = sorted(mine["cpu_mb_s"] / plain["cpu_mb_s"] for plain, mine in turns)
    ratio = ratios[len(ratios) // 2]
    print(f"{'reader':24} {'MB/s':>8} {'MB per CPU s':>13} {'peak MB':>8} {'samples':>10}")
    for name, row in found.items():
        print(f"{name:24} {row['mb_s']:8.1f} {row['cpu_mb_s']:13.1f} {row['peak_mb']:8.0f} {row['samples']:10.0f}")
    load = os.getloadavg()[0]
    print(
        f"ours: {ratio:.1f} x loop, in {ROUNDS} turns {ratios[0]:.1f} to {ratios[-1]:.1f} "
        f"(aims {AIM_RATIO:.0f} x, {AIM_MB_S:.0f} MB/s, {AIM_RSS_MB} MB), load {load:.0f}"
    )
    results = ROOT / "benchmarks" / "results" / "parse_speed.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(
        json.dumps({"mb": chosen.mb, "ratio": ratio, "ratios": ratios, "load": load, "readers": found}, indent=2)
        + "\n"
    )


if __name__ == "__main__":
    main()
