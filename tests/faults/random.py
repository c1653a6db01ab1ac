"""Throws random faults at real runs: `python tests/faults/random.py --cases 300 --seed 7 [--airflow] [--paddle]`.

Each case gets a pair of local nodes of its own (as root in namespaces of its own). The table goes to stdout, all
details to --json; with --write they become docs/random-faults.md. Exit code 1 when a case ended wrongly.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    # Run as a script, this folder comes first on the path, and this file would be everyone's `random`.
    sys.path[0] = str(ROOT)

import argparse
import json
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

OWN = (
    "unshare --kill-child --pid --fork --mount-proc --mount --net --uts --ipc bash -c "
    "'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && ip link set lo up && exec \"$@\"' own "
    # A shell starts background jobs with SIGINT ignored, and the runs would inherit that.
    "env --default-signal=INT,HUP,QUIT"
)
CASE_S = 600


def main() -> int:
    """Draw, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=15)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="cases at once")
    parser.add_argument("--only", default="", help="faults whose name contains this, or one of A|B")
    parser.add_argument("--airflow", action="store_true", help="through a real Airflow with PostgreSQL")
    parser.add_argument(
        "--paddle",
        type=float,
        nargs="?",
        const=1 / 3,
        default=0.0,
        help="share with real Paddle (default: a third)",
    )
    parser.add_argument("--json", type=Path, default=None, help="write all details there")
    parser.add_argument("--write", action="store_true", help="write docs/random-faults.md")
    parser.add_argument("--one", type=int, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    seed = secrets.randbelow(10**6) if args.seed is None else args.seed
    if args.one is not None:
        return _one(args, seed)
    print(f"seed {seed}, {args.cases} cases", flush=True)
    began, rows = time.monotonic(), []
    for row in _rows(args, seed):
        rows.append(row)
        _line(row)
        _keep(rows, seed, args.json)
    return _summary(rows, seed, args, time.monotonic() - began)


def _rows(args: argparse.Namespace, seed: int) -> Iterator[dict[str, Any]]:
    """The rows of all cases, as they end."""
    numbers = range(args.first, args.first + args.cases)
    if args.airflow:
        from tests.faults.airflow.campaign import run_cases

        yield from run_cases(numbers, seed, jobs=args.jobs, only=args.only, paddle=args.paddle)
    else:
        with ThreadPoolExecutor(max_workers=args.jobs) as pool:
            yield from pool.map(lambda number: _in_own_namespaces(args, seed, number), numbers)


def _in_own_namespaces(args: argparse.Namespace, seed: int, number: int) -> dict[str, Any]:
    """A case in a process of its own: its row."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        words = [sys.executable, "-m", "tests.faults.random", "--one", str(number), "--seed", str(seed)]
        words += ["--only", args.only, "--paddle", str(args.paddle), "--json", answer.name]
        command = ["bash", "-c", f'exec {OWN} "$@"', "case", *words]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=CASE_S, check=False
            )
            result = done.stderr[-600:]
        except subprocess.TimeoutExpired:
            result = f"no end after {CASE_S} s"
        text = Path(answer.name).read_text()
    if text:
        row: dict[str, Any] = json.loads(text)
        return row
    return {"number": number, "name": "?", "seen": {"status": "injector failed"}, "wrong": {"injector": result}}


def _one(args: argparse.Namespace, seed: int) -> int:
    from tests.faults.case import run_case
    from tests.faults.catalogue import draw
    from tests.faults.oracle import wrong

    drawn = draw(args.one, seed, "cli", only=args.only, paddle=args.paddle)
    with tempfile.TemporaryDirectory(prefix="tipcflow-case-", ignore_cleanup_errors=True) as folder:
        seen = run_case(drawn, Path(folder))
    found = wrong(drawn.faults, drawn.target, seen, rank=drawn.rank)
    where = {"target": drawn.target, "rank": drawn.rank, "iteration": drawn.iteration, "delay_s": drawn.delay_s}
    where["before"] = drawn.before
    if not found:
        seen.output = ""
    row = {
        "number": drawn.number,
        "name": drawn.name,
        "paddle": drawn.paddle,
        **where,
        "seen": asdict(seen),
        "wrong": found,
    }
    (args.json or Path(os.devnull)).write_text(json.dumps(row))
    return 1 if found else 0


def _line(row: dict[str, Any]) -> None:
    seen, found = row["seen"], row["wrong"]
    what = "; ".join(f"{kind}: {text}" for kind, text in found.items())
    print(
        f"{row['number']:>4}  {row['name']:<42.42} {seen['status']:<14} {seen.get('failure', ''):<13} "
        f"{seen.get('seconds', 0):>6.1f} s  {what[:300] or 'right'}",
        flush=True,
    )


def _keep(rows: list[dict[str, Any]], seed: int, path: Path | None) -> None:
    """What there is so far: a campaign may be stopped."""
    if path:
        path.write_text(json.dumps({"seed": seed, "rows": sorted(rows, key=lambda row: row["number"])}, indent=1))


def _summary(rows: list[dict[str, Any]], seed: int, args: argparse.Namespace, took_s: float) -> int:
    from tests.faults.page import classes, write

    counted = classes(rows)
    print(f"\n{len(rows)} cases, seed {seed}, {took_s:.0f} s")
    for kind, count in counted.items():
        print(f"{kind:<18}{count:>5}")
    if args.write:
        write(rows, seed, "airflow" if args.airflow else "cli")
    failed = sum(bool(row["wrong"]) for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
