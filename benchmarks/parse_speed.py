"""Read speed of a Clas-style worker log on one core.

Ours (all fields typed: value, unit, phase, epoch, iteration, offset) against a plain loop over `key: value` parts,
one regular expression per line, and a findall over whole chunks into numpy. The peers read a part of the log, each
in a process of its own; peak memory is that of ours after the whole log. On a machine that others use too
the ratio to the loop is what counts: both read the same part in turns, several times, and the median is reported.

Then what a run does with such logs (run_logs.py): read all ranks' logs and store every number. Once with logs in
which three of four bytes are other lines (warnings of the framework, of data loaders, of NCCL), once with training
lines alone, eleven numbers in each.

Prints a table and writes benchmarks/results/parse_speed.json. `--mb 1000` is the size of the goal.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
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
    """A training log of that size: 500 printed iterations per epoch, one evaluation after each epoch."""
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


NOISE = (
    "I1122 08:{0:02}:{1:02}.{2:06}  4123 tcp_utils.cc:181] The server starts to listen on IP_ANY:{2}",
    "[2022/05/12 08:{0:02}:{1:02}] ppcls WARNING: The sample {2} of class n{2:08} has {0} channels: made RGB.",
    "W1122 08:{0:02}:{1:02}.{2:06}  4123 gpu_resources.cc:119] Please NOTE: device: 0, Compute Capability: 8.0",
    "worker-{0}:4123:{2} [0] NCCL INFO Channel {1:02}/{0} : 0[1000] -> 1[2000] via P2P/IPC/read",
    "/usr/lib/python3.8/site-packages/paddle/vision/transforms/functional_pil.py:36: DeprecationWarning: NEAREST "
    "is deprecated and will be removed in Pillow 10 (2023-07-01). Use Resampling.NEAREST instead.",
    "",
)


def mixed(megabytes: int) -> Iterator[str]:
    """A log of that size in which a quarter of the bytes are training and evaluation lines."""
    rng = random.Random(7)
    other, number = 0, 0
    for line in lines(megabytes // 4):
        yield line
        other += 3 * len(line)
        while other > 0:
            text = NOISE[number % len(NOISE)].format(number % 24, number % 60, rng.randrange(10**6)) + "\n"
            number += 1
            other -= len(text)
            yield text


def run_of(make: Callable[[int], Iterator[str]], megabytes: int, ranks: int, folder: Path) -> dict[str, float]:
    """Measure a run with logs of that size, one per rank; the files are removed."""
    folder.mkdir()
    try:
        for rank in range(ranks):
            with (folder / f"workerlog.{rank}").open("w") as file:
                file.writelines(make(megabytes))
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(ROOT / "benchmarks" / "run_logs.py"), str(folder)]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, env=env).stdout))
    finally:
        shutil.rmtree(folder)


def ours(path: Path) -> int:
    """Samples, summarized as by `tipcflow parse`."""
    from tipcflow.parse.bulk.summary import summarize_log

    with path.open("rb") as file:
        account = summarize_log(iter(lambda: file.read(PIECE), b""), "auto")
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
    """All numbers of a chunk with one findall, typed by numpy, without names."""
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
    """MB/s (wall and CPU time) and peak MB of a reader in its own process on one core."""
    command = [sys.executable, __file__, "--reader", name, "--file", str(path)]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, env=env).stdout))


def one(name: str, path: Path) -> dict[str, float]:
    """The measurement in the process of `measured`."""
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
    parser.add_argument("--ranks", type=int, default=4, help="logs of a run, each of that size")
    parser.add_argument("--only-run", action="store_true", help="measure what a run does, not the readers")
    chosen = parser.parse_args()
    if chosen.reader:
        print(json.dumps(one(chosen.reader, chosen.file)))
        return
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("mixed", mixed), ("training lines only", lines)):
            runs[name] = run_of(make, chosen.mb, chosen.ranks, Path(folder) / "run")
    ranks = f"run: {chosen.ranks} logs"
    print(f"{ranks:24} {'MB per CPU s':>13} {'peak MB':>8} {'samples':>10} {'facts s':>8}")
    for name, row in runs.items():
        reported = f"{name:24} {row['cpu_mb_s']:13.1f} {row['peak_mb']:8.0f} {row['samples']:10.0f}"
        print(f"{reported} {row['facts_cpu_s']:8.1f}")
    results = ROOT / "benchmarks" / "results" / "parse_speed.json"
    results.parent.mkdir(exist_ok=True)
    report = {"mb": chosen.mb, "ranks": chosen.ranks, "runs": runs}
    if not chosen.only_run:
        report |= of_readers(chosen.mb)
    results.write_text(json.dumps(report, indent=2) + "\n")


def of_readers(megabytes: int) -> dict[str, object]:
    """Measure and print the readers of one log."""
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "workerlog.0", Path(folder) / "part.log"
        for path, size in ((whole, megabytes), (part, min(PEER_MB, megabytes))):
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
        f"(goals {AIM_RATIO:.0f} x, {AIM_MB_S:.0f} MB/s, {AIM_RSS_MB} MB), load {load:.0f}"
    )
    return {"ratio": ratio, "ratios": ratios, "load": load, "readers": found}


if __name__ == "__main__":
    main()
