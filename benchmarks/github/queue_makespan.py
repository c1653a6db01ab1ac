"""Makespan of many pull requests on a busy cluster, in simulated time: 20 pull requests of 4 chains on 8 nodes.

Drives the code that real runs use: the budget planner selects what fits each pull request, placement chooses the
nodes of each run, and queue and leases of the metrics database (SQLite) decide which run starts when. Only clock
and training are simulated: a run holds its node for --seconds, varied by --spread, and for --overhead beyond that.
A waiting run polls within 5 s of the end of another run on its node. All pull requests are opened within --within
seconds.

Prints a row per seed: makespan, ratio to the work per node (aim: 1.2), and the longest wait of a run.
"""

import argparse
import heapq
import random
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tipcflow.budget import Estimate, Limits, PlannedChain, PlannedStep, fit
from tipcflow.domain import Cluster, Node, Run, Status
from tipcflow.execute.leases.keeper import POLL_EVERY_S, SLOWEST
from tipcflow.execute.resolve.placement import load_of, place_nodes
from tipcflow.store import Store

AIM = 1.2
TTL_S = 1e6


class Simulation:
    """One seed: the pull requests, their runs, and the clock."""

    def __init__(self, store: Store, options: argparse.Namespace, seed: int) -> None:
        self.store, self.options, self.random = store, options, random.Random(seed)
        names = [f"n{number}" for number in range(options.nodes)]
        nodes = tuple(Node(name=name, address=name, python="/p", workspace="/w") for name in names)
        self.cluster = Cluster(name="lab", nodes=nodes)
        self.work_s = self.end_s = self.longest_wait_s = 0.0
        # (time, order, what, run, node, time of the request)
        self.events: list[tuple[float, int, str, str, str, float]] = []
        self.per_node: Counter[str] = Counter()
        self.waiting: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)

    def run(self) -> None:
        """Open the pull requests and continue until all runs have ended."""
        for number in range(self.options.pulls):
            opened = self.random.uniform(0, self.options.within)
            for chain in self._fitting(number):
                self._push(opened, "resolve", chain, "", opened)
        while self.events:
            now, _, what, run, node, since = heapq.heappop(self.events)
            getattr(self, f"_{what}")(now, run, node, since)

    def _push(self, at: float, what: str, run: str, node: str, since: float) -> None:
        heapq.heappush(self.events, (at, self.random.getrandbits(40), what, run, node, since))

    def _fitting(self, number: int) -> list[str]:
        """The chains that the planner starts for a pull request."""
        limits = Limits(chain_s=900, total_s=3600, nodes=2, unknown_s=180, reserve_s=300)
        train = PlannedStep("train", 1, Estimate(self.options.seconds, self.options.seconds, 10))
        chains = [PlannedChain(f"p{number:02}-c{index}", (train,)) for index in range(self.options.chains)]
        fitted = fit(chains, limits)
        return [chain.chain for chain in fitted.chains]

    def _resolve(self, now: float, run: str, _: str, since: float) -> None:
        """Choose the node, as task `resolve` does."""
        placed = place_nodes(self.cluster, 1, load_of(self.store, self.cluster, run)).nodes[0].name
        made = Run(id=run, chain=run, suite="s", model="m", mode="lite_train_lite_infer", cluster="lab",
                   nodes=(placed,), trigger="github", created_at=now)  # fmt: skip
        self.store.runs.create(made)
        self.per_node[placed] += 1
        self._wait(now, run, placed, since)

    def _wait(self, now: float, run: str, node: str, since: float) -> None:
        """Poll the queue once, as task `acquire` does."""
        slots = [(node, 0)]
        place = self.store.queue.join(run, slots, owner="bench", ttl_s=TTL_S, now=now, rise_s=1800)
        acquired = place.free and self.store.leases.acquire(
            run, slots, owner="bench", ttl_s=TTL_S, now=now, rise_s=1800
        )
        if not acquired:
            self.waiting[node].append((run, since))
            return
        self.longest_wait_s = max(self.longest_wait_s, now - since)
        seconds = self.options.seconds * self.random.uniform(1 - self.options.spread, 1 + self.options.spread)
        self.work_s += seconds
        self._push(now + seconds + self.options.overhead, "end", run, node, since)

    def _end(self, now: float, run: str, node: str, _: float) -> None:
        self.store.leases.release(run)
        self.store.runs.finish(run, Status.PASS, "", now)
        # Earlier polls cannot succeed: nothing else frees the node.
        for waiter, since in self.waiting.pop(node, []):
            self._push(now + self.random.uniform(0, POLL_EVERY_S * SLOWEST), "wait", waiter, node, since)
        self.end_s = max(self.end_s, now)


def main() -> int:
    """Simulate, print; the exit code is 1 if a seed misses the aim."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("pulls", 20), ("chains", 4), ("nodes", 8), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, value in (("seconds", 150.0), ("spread", 0.1), ("overhead", 15.0), ("within", 60.0)):
        parser.add_argument(f"--{name}", type=float, default=value)
    options = parser.parse_args()
    print(f"{'seed':>4}{'makespan s':>12}{'work/nodes s':>14}{'ratio':>7}{'longest wait s':>16}  runs per node")
    worst = 0.0
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{Path(folder) / 'q.db'}") as store:
            simulation = Simulation(store, options, seed)
            simulation.run()
            assert not store.leases.all()
            assert not store.runs.unfinished()
        per_node_s = simulation.work_s / options.nodes
        ratio = simulation.end_s / per_node_s
        worst = max(worst, ratio)
        counts = sorted(simulation.per_node.values())
        print(f"{seed:>4}{simulation.end_s:>12.0f}{per_node_s:>14.0f}{ratio:>7.2f}", end="")
        print(f"{simulation.longest_wait_s:>16.0f}  {counts[0]} to {counts[-1]}", flush=True)
    return int(worst > AIM)


if __name__ == "__main__":
    sys.exit(main())
