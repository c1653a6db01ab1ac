"""Start skew of a gang's nodes, and the time until all have ended after one fails.

Placeholder trainings (`date; sleep`), on 2, 4, 8 and 16 nodes, through our gang and, in turn on the same nodes,
manual procedure: one background `ssh` per node, and one more per node to end leftovers.

Prints a table and writes benchmarks/results/gang_start.json.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import run_overhead as overhead

from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.domain import JobCommand, JobSpec, MemberState, Node
from tipcflow.execute.attempt.drive import AttemptDriver
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.progress import Event, Kind
from tipcflow.remote import paths

SIZES = (2, 4, 8, 16)
DEADLINE_S = 120.0
SLEEP = "sleep 4321"
BEGIN = f"date +%s.%N; exec {SLEEP}"


class States:
    """Member states of one process."""

    def read(self) -> dict[str, MemberState]:
        """No other process drives the gang."""
        return {}

    def write(self, state: MemberState) -> MemberState:
        """Nothing to store."""
        return state


class Began:
    """Start time of each node's command. All local nodes share one clock."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def take(self, event: Event) -> None:
        """A line of a job's log."""
        if event.kind is Kind.LOG and event.node not in self.at:
            self.at[event.node] = float(event.text.split()[0])


def until(condition: Any, what: str) -> float:
    """Wait for a condition. Returns the time when it became true, in seconds since the epoch."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.01)
    return time.time()


def sleeping(nodes: LocalNodes) -> list[tuple[str, int]]:
    """(node, pid) of running placeholder processes."""
    names = [node.name for node in nodes.cluster.nodes]
    return [(name, one.pid) for name in names for one in nodes.processes(name) if one.cmdline == SLEEP]


def spec(node: Node, run: str) -> JobSpec:
    """The placeholder as a job."""
    return JobSpec(
        run=run,
        step="train",
        node=node.name,
        fence=time.time_ns() // 1_000_000,
        slots=(0,),
        workspace=node.workspace,
        root=paths.run_root(node, run),
        commands=(JobCommand(text=BEGIN, cwd="."),),
        barrier=True,
        min_free_bytes=0,
    )


def through_gang(nodes: LocalNodes, run: str) -> dict[str, float]:
    """One gang: skew, seconds from request to last start, seconds from failure to last end."""
    began = Began()
    sessions = [NodeSession(node) for node in nodes.cluster.nodes]

    def ready(session: NodeSession) -> None:
        session.prepare()
        session.transport.run(f"mkdir -p {paths.run_root(session.node, run)}")

    with ThreadPoolExecutor(len(sessions)) as pool:
        list(pool.map(ready, sessions))
    members = [Member(one, spec(one.node, run), listener=began.take, reconnect_s=10) for one in sessions]
    begun = time.time()
    named = {member.name: member for member in members}
    driver = AttemptDriver(named, tuple(named), States(), together=True, cancel=threading.Event())

    def drive() -> None:
        driver.start_gang(DEADLINE_S)
        driver.watch(DEADLINE_S)

    thread = threading.Thread(target=drive)
    thread.start()
    until(lambda: len(began.at) == len(members), "all to begin")
    until(lambda: len(sleeping(nodes)) == len(members), "the stand-ins")
    name, pid = sleeping(nodes)[-1]
    failed = time.time()
    nodes.exec(name, ["kill", "-9", str(pid)])
    ended = until(lambda: not sleeping(nodes), "the end of all")
    thread.join(DEADLINE_S)
    for session in sessions:
        session.close()
    return numbers(list(began.at.values()), begun, failed, ended)


def by_hand(nodes: LocalNodes) -> dict[str, float]:
    """The same with one ssh client per node."""
    commands = [shlex.split(overhead.ssh(node, BEGIN)) for node in nodes.cluster.nodes]
    begun = time.time()
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    began = []
    for process in started:
        assert process.stdout is not None
        began.append(float(process.stdout.readline()))
    until(lambda: len(sleeping(nodes)) == len(started), "the stand-ins")
    failed = time.time()
    ends = [shlex.split(overhead.ssh(node, f"pkill -x -f {shlex.quote(SLEEP)}")) for node in nodes.cluster.nodes]
    for process in [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in ends]:
        process.wait(DEADLINE_S)
    ended = until(lambda: not sleeping(nodes), "the end of all")
    for process in started:
        process.wait(DEADLINE_S)
    return numbers(began, begun, failed, ended)


def numbers(began: list[float], begun: float, failed: float, ended: float) -> dict[str, float]:
    """Reported values of one start and one end, in seconds."""
    return {"skew": max(began) - min(began), "start": max(began) - begun, "stop": ended - failed}


def main() -> None:
    """Run the rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="tipcflow-gang-") as home:
        for size in options.sizes:
            names = tuple(f"n{number}" for number in range(size))
            with local_nodes(Path(home), names=names, slots=1) as nodes:
                for number in range(options.rounds):
                    for way, reported in (
                        ("gang", through_gang(nodes, f"bench{number}")),
                        ("ssh", by_hand(nodes)),
                    ):
                        rows.append({"nodes": size, "way": way, **reported})
                        print(json.dumps(rows[-1]), flush=True)
    report(rows)


def report(rows: list[dict[str, Any]]) -> None:
    """The table and benchmarks/results/gang_start.json."""
    print(f"\nload {os.getloadavg()[0]:.1f}; seconds: median (max)")
    print(f"{'nodes':>6} {'way':<6}  {'skew':<13}{'start':<13}stop")
    for size in sorted({row["nodes"] for row in rows}):
        for way in ("gang", "ssh"):
            mine = [row for row in rows if (row["nodes"], row["way"]) == (size, way)]
            cells = [[row[key] for row in mine] for key in ("skew", "start", "stop")]
            result = "  ".join(f"{statistics.median(cell):.2f} ({max(cell):.2f})" for cell in cells)
            print(f"{size:>6} {way:<6}  {result}")
    facts = {"unit": "s", "cores": os.cpu_count(), "load": os.getloadavg(), "rows": rows}
    results = overhead.ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "gang_start.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
