"""What the simulation is about: nodes, chains, their trainings, and the failures of nodes."""

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tipcflow.budget import Estimate, Limits, PlannedChain, PlannedStep, fit
from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, Node

ROOT = Path(__file__).resolve().parents[2]
START = 1_795_000_000.0
HOUR_S = 3600.0
SLOTS = 8
SUITE = "simulated"
MODE = {"weekly": "lite_train_whole_infer"}
CHANGE_MODE = "lite_train_lite_infer"
# (share of the chains, nodes, GPUs of each): most models train on one GPU or on one node.
SHAPES = ((0.50, 1, 1), (0.35, 1, 8), (0.10, 2, 8), (0.05, 4, 8))
# Median of a training and standard deviation of its logarithm.
LENGTHS = {"weekly": (3600.0, 0.6), "github": (480.0, 0.5), "manual": (600.0, 0.5)}
# A node is away for a median of two hours: a reboot or a repair.
REPAIR_S, REPAIR_SPREAD = 7200.0, 0.8
# A pull request affects up to this many chains.
MOST_CHAINS = 12
_TEXT = ROOT / "tests" / "golden" / "plan" / "inputs" / "norm_fleet.txt"


@dataclass(frozen=True)
class Wanted:
    """A run that a user, a pull request or the weekly run requests."""

    run: str
    chain: int
    trigger: str
    seconds: float
    pull: int = -1


class World:
    """All random choices, the same for the same options."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self._random = random.Random(options.seed)
        self._text = _TEXT.read_text(encoding="utf-8")
        self._count = 0

    def cluster(self) -> Cluster:
        """Return the cluster file of that many nodes."""
        nodes = tuple(
            Node(
                name=f"gpu-{number:04}",
                address=f"10.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}",
                connection=f"node_{number:04}",
                device="gpu",
                slots=SLOTS,
                python="/opt/paddle/bin/python",
                workspace="/data/tipcflow",
            )
            for number in range(self.options.nodes)
        )
        return Cluster(name="fleet", nodes=nodes)

    @staticmethod
    def suite() -> Suite:
        """Return the suite of all chains."""
        return Suite.model_validate(
            {"name": SUITE, "folder": "/suite", "dialects": ["models/template"], "framework": ""}
        )

    def params(self, chain: int) -> tuple[str, str]:
        """Return path and text of a chain's params file."""
        _, nodes, slots = self.shape(chain)
        listed = ",".join(str(slot) for slot in range(slots))
        places = ",".join(f"192.168.0.{number + 1}" for number in range(nodes))
        devices = f"{places};{listed}" if nodes > 1 else listed
        text = self._text.replace("192.168.0.1,192.168.0.2;0,1|0", devices).replace("null|amp", "null")
        text = text.replace("mobilenet_v3_small", f"model_{chain:05}")
        return f"test_tipc/configs/model_{chain:05}/train_infer_python.txt", text

    def shape(self, chain: int) -> tuple[float, int, int]:
        """Return (share, nodes, GPUs of each) of a chain."""
        place, total = (chain * 0.6180339887) % 1, 0.0
        for shape in SHAPES:
            total += shape[0]
            if place < total and shape[1] <= self.options.nodes:
                return shape
        return SHAPES[0]

    def wanted(self, chain: int, trigger: str, pull: int = -1) -> Wanted:
        """Return a run of a chain, with the length of its training."""
        self._count += 1
        median, spread = LENGTHS[trigger]
        seconds = median * math.exp(self._random.gauss(0, spread))
        return Wanted(f"{trigger}-{self._count:06}", chain, trigger, seconds, pull)

    def weekly(self) -> Iterator[Wanted]:
        """Yield the weekly run of each chain."""
        for chain in range(self.options.chains):
            yield self.wanted(chain, "weekly")

    def changes(self) -> Iterator[tuple[float, list[Wanted]]]:
        """Yield the pull requests: time and the runs that the budget planner starts."""
        yield from self._arrivals(self.options.pulls, self._pull)

    def users(self) -> Iterator[tuple[float, list[Wanted]]]:
        """Yield the runs of users."""
        yield from self._arrivals(self.options.manual, lambda _: [self.wanted(self._any(), "manual")])

    def failures(self) -> Iterator[tuple[float, str, float]]:
        """Yield time, name and duration of failures of nodes."""
        rate = self.options.nodes / (self.options.mtbf_days * 24 * HOUR_S)
        at = 0.0
        while rate and (at := at + self._random.expovariate(rate)) < self.options.hours * HOUR_S:
            seconds = REPAIR_S * math.exp(self._random.gauss(0, REPAIR_SPREAD))
            yield at, f"gpu-{self._random.randrange(self.options.nodes):04}", seconds

    def _arrivals(self, per_hour: float, runs_of: object) -> Iterator[tuple[float, list[Wanted]]]:
        at, number = 0.0, 0
        while per_hour and (at := at + self._random.expovariate(per_hour / HOUR_S)) < self.options.hours * HOUR_S:
            yield at, runs_of(number)  # type: ignore[operator]
            number += 1

    def _pull(self, number: int) -> list[Wanted]:
        names = {
            f"chain {chain}": chain for chain in {self._any() for _ in range(self._random.randint(1, MOST_CHAINS))}
        }
        median = LENGTHS["github"][0]
        step = PlannedStep("train", 1, Estimate(median, 1.5 * median, 10))
        limits = Limits(chain_s=1800, total_s=7200, nodes=self.options.nodes, unknown_s=600, reserve_s=300)
        fitted = fit([PlannedChain(name, (step,)) for name in sorted(names)], limits)
        return [self.wanted(names[chain.chain], "github", number) for chain in fitted.chains]

    def _any(self) -> int:
        return self._random.randrange(self.options.chains)
