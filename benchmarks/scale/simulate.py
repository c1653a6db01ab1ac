"""A site in simulated time: 1,000 nodes, 10,000 chains a week, 40 pull requests an hour, failing nodes.

    python benchmarks/scale/simulate.py [--nodes 1000] [--chains 10000] [--pulls 40] [--hours 24] [--schedulers 2]
        [--database postgresql|sqlite] [--at-once 1000] [--mtbf-days 30] [--seed 1]

Only clock, nodes and trainings are simulated. Each scheduler is a process with its own connection to the database
and runs the code of real runs: budget planner, planner, placement, queue, leases, fences, documents, steps,
numbers, checks with the gate, and certificate. The queue decides which run starts when. A waiting run polls when
something on its nodes has changed, or its priority has risen; the other polls of a real run, which cannot change
anything, are counted with the measured duration of a poll. A run whose node fails ends; its lease stays until the
node is back.

The weekly run keeps --at-once chains in flight. All other runs are created within --hours; the simulation
continues until all have ended. Every --full-every th run stores all of its numbers and is judged.

Prints tables and writes benchmarks/results/scale-<database>.json. The exit code is 1 if a slot was granted twice,
a run has no status, or a run was overtaken: one that arrived more than an hour later got a slot that it wanted at
that time. A run that may move to other nodes can also be bypassed: the later run got a node that it could have
used instead of one that another run holds. This is counted and no problem, because a free node that no earlier
request wants goes to the run that polls first.
"""

import argparse
import heapq
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import figures  # noqa: E402
from controller import RISE_S, Event, Outcome, Slots, serve  # noqa: E402
from store_data import database  # noqa: E402
from world import HOUR_S, Wanted, World  # noqa: E402

from tipcflow.store import Store  # noqa: E402

# As the product's trigger of a waiting run; detection of a lost node; error of a run on a node that is away.
POLL_S = (3.5, 6.5)
DETECT_S, REFUSED_S = 90.0, 60.0
SWEEP_S = HOUR_S
# Between the end of a weekly chain and the start of the next one.
NEXT_S = 15.0


@dataclass
class Timeline:
    """What happened to one run, seconds of simulated time; `slots` are those that it wanted."""

    wanted: Wanted
    arrived: float
    granted: float | None = None
    ended: float | None = None
    status: str = ""
    slots: Slots = ()
    polls: list[float] = field(default_factory=list)


class Site:
    """Clock, nodes and the runs, in the process that distributes events to the schedulers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.world = World(options)
        self.random = random.Random(options.seed + 1)
        self.names = {node.address: node.name for node in self.world.cluster().nodes}
        self.addresses = {name: address for address, name in self.names.items()}
        self.runs: dict[str, Timeline] = {}
        self.now = 0.0
        self.problems: list[str] = []
        # Waiting runs that could have used a node which a run got that arrived more than an hour later.
        self.bypassed: set[str] = set()
        self.holder: dict[tuple[str, int], str] = {}
        self.away: dict[str, float] = {}
        self.failures: list[tuple[float, float]] = []
        self._events: list[tuple[float, int, str, Any]] = []
        self._order = 0
        self._waiting: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._polls: dict[str, float] = {}
        self._weekly = self.world.weekly()

    def plan(self) -> None:
        """Put everything that comes from outside on the clock."""
        for at, runs in (*self.world.changes(), *self.world.users()):
            for wanted in runs:
                self._push(at, "resolve", wanted)
        for number in range(self.options.at_once):
            self._next_weekly(number / 10)
        for at, name, seconds in self.world.failures():
            self._push(at, "fail", (name, seconds))
        self._push(SWEEP_S, "maintain", None)

    def tick(self) -> list[Event]:
        """Return the events of the schedulers within the next --tick seconds; failures of nodes happen at once."""
        found: list[Event] = []
        until = self._events[0][0] + self.options.tick
        while self._events and self._events[0][0] < until:
            self.now, _, kind, what = heapq.heappop(self._events)
            found += getattr(self, f"_at_{kind}")(what)
        return found

    @property
    def is_over(self) -> bool:
        """Whether all runs have ended and none is to come."""
        return not any(kind not in ("maintain", "fail", "back") for _, _, kind, _ in self._events)

    def apply(self, outcome: Outcome) -> None:
        """Update the site by what a scheduler did."""
        at, run = outcome.event.at, outcome.event.run
        if outcome.kind == "swept":
            self._wake({node for node, _ in outcome.slots}, at)
            return
        line = self.runs[run]
        line.slots = outcome.slots
        nodes = {node for node, _ in outcome.slots}
        if outcome.kind == "waiting":
            line.polls.append(at)
            for node in outcome.candidates:
                self._waiting[node][run] = None
            self._poll_when_risen(run, line, at)
        elif outcome.kind == "granted":
            self._granted(run, line, at, nodes)
        else:
            line.ended, line.status = at, "pass" if outcome.kind == "ended" else "infra_failure"
            for slot in outcome.slots:
                if self.holder.get(slot) == run:
                    del self.holder[slot]
            self._wake(nodes, at)
            if line.wanted.trigger == "weekly":
                self._next_weekly(at + NEXT_S)

    def _granted(self, run: str, line: Timeline, at: float, nodes: set[str]) -> None:
        line.granted = at
        for waiting in self._waiting.values():
            waiting.pop(run, None)
        for slot in line.slots:
            if self.holder.setdefault(slot, run) != run:
                self.problems.append(f"slot {slot} was granted to {run} and {self.holder[slot]}")
        for node in nodes:
            for other in self._waiting[node]:
                before = self.runs[other]
                if before.arrived >= line.arrived - 2 * RISE_S:
                    continue
                if set(before.slots) & set(line.slots):
                    self.problems.append(f"{run} has overtaken {other}, which arrived more than an hour before")
                elif self._could_have_moved(before, node, run):
                    self.bypassed.add(other)
        if any(node in self.away for node in nodes):
            self._push(at + REFUSED_S, "lose", run)
        else:
            self._push(at + line.wanted.seconds, "end", run)

    def _could_have_moved(self, waiting: Timeline, node: str, granted: str) -> bool:
        """Whether a waiting run could use a node, if `granted` had not got it, instead of one that is in use."""
        wanted: defaultdict[str, list[int]] = defaultdict(list)
        for place, slot in waiting.slots:
            wanted[place].append(slot)
        return node not in wanted and any(
            any((place, slot) in self.holder for slot in slots)
            and all(self.holder.get((node, slot), granted) == granted for slot in slots)
            for place, slots in wanted.items()
        )

    def _next_weekly(self, at: float) -> None:
        for wanted in self._weekly:
            self._push(at, "resolve", wanted)
            return

    def _wake(self, nodes: Iterable[str], at: float) -> None:
        for node in nodes:
            for run in self._waiting[node]:
                self._poll_at(run, at + self.random.uniform(*POLL_S))

    def _poll_when_risen(self, run: str, line: Timeline, at: float) -> None:
        times = (line.arrived + number * RISE_S + self.random.uniform(*POLL_S) for number in (1, 2))
        for when in (moment for moment in times if moment > at):
            self._poll_at(run, when)
            return

    def _poll_at(self, run: str, at: float) -> None:
        known = self._polls.get(run)
        if known is None or known <= self.now or at < known:
            self._polls[run] = at
            self._push(at, "poll", run)

    def _push(self, at: float, kind: str, what: object) -> None:
        self._order += 1
        heapq.heappush(self._events, (at, self._order, kind, what))

    def _at_resolve(self, wanted: Wanted) -> Iterator[Event]:
        self.runs[wanted.run] = Timeline(wanted, self.now)
        yield Event(self.now, "resolve", wanted.run, wanted, frozenset(self.away))

    def _at_poll(self, run: str) -> Iterator[Event]:
        if self.runs[run].granted is None and self._polls.get(run) == self.now:
            yield Event(self.now, "poll", run, away=frozenset(self.away))

    def _at_end(self, run: str) -> Iterator[Event]:
        if not self.runs[run].status:
            self.runs[run].status = "ends"
            yield Event(self.now, "end", run)

    def _at_lose(self, run: str) -> Iterator[Event]:
        if not self.runs[run].status:
            self.runs[run].status = "ends"
            yield Event(self.now, "lose", run, away=frozenset(self.away))

    def _at_maintain(self, _: object) -> Iterator[Event]:
        if not self.is_over:
            self._push(self.now + SWEEP_S, "maintain", None)
        yield Event(self.now, "maintain", away=frozenset(self.away))

    def _at_fail(self, what: tuple[str, float]) -> Iterator[Event]:
        name, seconds = what
        address = self.addresses[name]
        if address not in self.away:
            self.failures.append((self.now, self.now + seconds))
            self.away[address] = self.now
            self._push(self.now + seconds, "back", address)
            for run in sorted({run for (node, _), run in self.holder.items() if node == address}):
                self._push(self.now + DETECT_S, "lose", run)
        yield from ()

    def _at_back(self, address: str) -> Iterator[Event]:
        del self.away[address]
        self._wake([address], self.now)
        yield from ()


def simulate(options: argparse.Namespace, url: str, home: Path) -> tuple[Site, dict[str, list[float]], float]:
    """Run the simulation; return the site, durations of calls by kind, and the seconds that it took."""
    site = Site(options)
    site.plan()
    (home / "configs").symlink_to(ROOT / "configs")
    context = multiprocessing.get_context("fork")
    lines, processes = [], []
    for _ in range(options.schedulers):
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(options, url, home, theirs), daemon=True)
        process.start()
        lines.append(ours)
        processes.append(process)
    begun = reported = time.monotonic()
    while not site.is_over:
        parts: defaultdict[int, list[Event]] = defaultdict(list)
        for event in site.tick():
            parts[crc32(event.run.encode()) % options.schedulers].append(event)
        for number, events in parts.items():
            lines[number].send(events)
        outcomes = [outcome for number in parts for outcome in lines[number].recv()]
        for outcome in sorted(outcomes, key=lambda outcome: outcome.order):
            site.apply(outcome)
        if time.monotonic() - reported > options.report:
            reported = time.monotonic()
            ended = sum(line.ended is not None for line in site.runs.values())
            state = f"hour {site.now / HOUR_S:.1f}: {ended} of {len(site.runs)} runs ended"
            print(state, file=sys.stderr, flush=True)
    calls: defaultdict[str, list[float]] = defaultdict(list)
    for line, process in zip(lines, processes, strict=True):
        line.send(None)
        for kind, seconds in line.recv().items():
            calls[kind] += seconds
        process.join()
    return site, dict(calls), time.monotonic() - begun


def main() -> int:
    """Simulate, print and store the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, count in (("nodes", 1000), ("chains", 10_000), ("schedulers", 2), ("at-once", 1000), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=count)
    for name, value in (("pulls", 40.0), ("manual", 10.0), ("hours", 24.0), ("mtbf-days", 30.0), ("tick", 2.0)):
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--full-every", type=int, default=10)
    parser.add_argument("--fixed", action="store_true", help="runs do not move to other nodes while they wait")
    parser.add_argument("--report", type=float, default=60.0)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    with database(options.database) as url, tempfile.TemporaryDirectory(prefix="tipcflow-scale-") as folder:
        Store.open(url).close()
        site, calls, seconds = simulate(options, url, Path(folder))
        with Store.open(url) as store:
            site.problems += [f"{run.id} has no status" for run in store.runs.unfinished()]
            found = figures.of(site, calls, store, seconds)
    print("\n".join(figures.tables(found)))
    options.results.mkdir(exist_ok=True)
    (options.results / f"scale-{options.database}.json").write_text(json.dumps(found, indent=1) + "\n")
    for problem in site.problems[:20]:
        print(f"problem: {problem}")
    return int(bool(site.problems))


if __name__ == "__main__":
    sys.exit(main())
