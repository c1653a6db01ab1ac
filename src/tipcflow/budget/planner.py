"""Fits chains into a budget: legs are dropped first, then chains, in a declared order of value."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import median

from tipcflow.budget.estimates import Estimate, Samples, estimate
from tipcflow.domain import LegKey, Plan
from tipcflow.domain.numbers.units import minutes


@dataclass(frozen=True)
class Limits:
    """Limits of the runs of one pull request, and the declared order of value.

    Attributes:
        chain_s: of one chain, seconds.
        total_s: of all chains together, from the first start to the last end, seconds.
        reserve_s: part of `total_s` that is kept for a confirm run.
        nodes: number of nodes that may be used at the same time.
        unknown_s: assumed duration of a step without history, with all its legs.
        drop: globs of leg ids (`step/leg`), the least valuable first; other legs are dropped after these, the
            longest first.
    """

    chain_s: float
    total_s: float
    reserve_s: float = 0.0
    nodes: int = 1
    unknown_s: float = 180.0
    drop: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedLeg:
    """One leg with its estimate."""

    step: str
    id: str
    estimate: Estimate

    @property
    def name(self) -> str:
        """`step/leg`."""
        return str(LegKey(self.step, self.id))


@dataclass(frozen=True)
class PlannedStep:
    """One step; `estimate` is its time without its legs."""

    id: str
    nodes: int
    estimate: Estimate
    legs: tuple[PlannedLeg, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def planned_s(self) -> float:
        """Reserved seconds, with the legs."""
        return self.estimate.planned + sum(leg.estimate.planned for leg in self.legs)

    @property
    def expected_s(self) -> float:
        """Predicted seconds, with the legs."""
        return self.estimate.seconds + sum(leg.estimate.seconds for leg in self.legs)


@dataclass(frozen=True)
class PlannedChain:
    """One chain.

    Attributes:
        steps: its steps that can run; every step comes after those that it needs.
        value: 0 is the most valuable chain.
    """

    chain: str
    steps: tuple[PlannedStep, ...]
    value: int = 0

    @property
    def planned_s(self) -> float:
        """Reserved seconds of the longest path through the steps."""
        return self._longest({step.id: step.planned_s for step in self.steps})

    @property
    def expected_s(self) -> float:
        """Predicted seconds of the longest path through the steps, without spread."""
        return self._longest({step.id: step.expected_s for step in self.steps})

    def _longest(self, seconds: Mapping[str, float]) -> float:
        ends: dict[str, float] = {}
        for step in self.steps:
            ends[step.id] = seconds[step.id] + max((ends.get(before, 0.0) for before in step.after), default=0.0)
        return max(ends.values(), default=0.0)

    @property
    def node_s(self) -> float:
        """Reserved node-seconds."""
        return sum(step.planned_s * step.nodes for step in self.steps)

    @property
    def nodes(self) -> int:
        """Nodes that it uses at the same time."""
        return max((step.nodes for step in self.steps), default=1)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Steps and legs without history."""
        steps = [step.id for step in self.steps if not step.estimate.runs]
        return (*steps, *(leg.name for step in self.steps for leg in step.legs if not leg.estimate.runs))

    def without(self, leg: PlannedLeg) -> "PlannedChain":
        """The chain without one leg."""
        steps = [
            replace(step, legs=tuple(other for other in step.legs if other != leg))
            if step.id == leg.step
            else step
            for step in self.steps
        ]
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True)
class DroppedLeg:
    """A leg that does not run; `seconds` is what that saves."""

    chain: str
    step: str
    leg: str
    seconds: float
    because: str


@dataclass(frozen=True)
class DroppedChain:
    """A chain that does not run."""

    chain: str
    seconds: float
    because: str


@dataclass(frozen=True)
class FittedChain:
    """A chain that runs.

    Attributes:
        seconds: reserved: the prediction with its spread.
        expected_s: predicted.
        start_s: predicted start, in seconds after the first one.
    """

    chain: str
    seconds: float
    expected_s: float
    node_seconds: float
    start_s: float
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Fit:
    """What runs, what was dropped and why.

    Attributes:
        total_s: predicted seconds from the first start to the last end.
    """

    chains: tuple[FittedChain, ...]
    legs: tuple[DroppedLeg, ...]
    dropped: tuple[DroppedChain, ...]
    total_s: float
    reserve_s: float

    @property
    def unproven(self) -> tuple[str, ...]:
        """What stays unproven, one sentence per dropped chain and leg."""
        chains = [f"chain {chain.chain} does not run: {chain.because}" for chain in self.dropped]
        legs = [f"leg {LegKey(leg.step, leg.leg)} of {leg.chain} does not run: {leg.because}" for leg in self.legs]
        return (*chains, *legs)


def planned_chain(plan: Plan, samples: Samples, limits: Limits, *, value: int = 0) -> PlannedChain:
    """A plan with estimates; steps and legs that cannot run are left out.

    A leg without history takes as long as the longest known leg of its step: otherwise a dropped leg would never
    run, and so never have a history.
    """
    steps = []
    for step in plan.steps:
        if step.not_run:
            continue
        names = [leg.id for leg in step.legs if not leg.not_run]
        past = {name: samples.legs.get((step.id, name), ()) for name in names}
        default = max(
            (median(took) for took in past.values() if took), default=limits.unknown_s / (len(names) or 1)
        )
        legs = tuple(PlannedLeg(step.id, name, estimate(took, default)) for name, took in past.items())
        own = estimate(samples.steps.get(step.id, ()), 0.0 if legs else limits.unknown_s)
        steps.append(PlannedStep(step.id, max(1, len(step.nodes)), own, legs, tuple(step.after)))
    return PlannedChain(plan.chain, tuple(steps), value)


def values(chains: Sequence[str], keep: Sequence[str]) -> dict[str, int]:
    """Chain -> its value, 0 for the most valuable one.

    Args:
        chains: in the order of the reasons for which they were selected.
        keep: globs of chains, the most valuable first; the others follow.
    """

    def rank(chain: str) -> int:
        return next((number for number, glob in enumerate(keep) if fnmatchcase(chain, glob)), len(keep))

    return {chain: number for number, chain in enumerate(sorted(chains, key=rank))}


def fit(chains: Iterable[PlannedChain], limits: Limits) -> Fit:
    """Drop legs, then chains, until all limits hold.

    Every inference step keeps one leg. Among chains, legs of the least valuable chain are dropped first.
    """
    legs: list[DroppedLeg] = []
    dropped: list[DroppedChain] = []
    remaining: list[PlannedChain] = []
    for chain in sorted(chains, key=lambda planned: planned.value):
        fitted = _fit_one(chain, limits, legs, dropped)
        if fitted:
            remaining.append(fitted)
    remaining, removed = _fit_all(remaining, limits, dropped)
    why = _too_long(limits)
    legs = [leg for leg in legs if leg.chain in {planned.chain for planned in remaining}]
    legs += [_dropped(remaining[number], leg, why) for number, leg in removed]
    starts = _starts(remaining, limits.nodes)
    fitted_chains = tuple(
        FittedChain(planned.chain, planned.planned_s, planned.expected_s, planned.node_s, start, planned.unknown)
        for planned, start in zip(remaining, starts, strict=True)
    )
    return Fit(fitted_chains, tuple(legs), tuple(dropped), _total(remaining, limits.nodes), limits.reserve_s)


def _fit_all(
    chains: Sequence[PlannedChain], limits: Limits, dropped: list[DroppedChain]
) -> tuple[list[PlannedChain], list[tuple[int, PlannedLeg]]]:
    """The chains within the common limit, and the legs removed for it: (position of the chain, leg)."""
    limit = limits.total_s - limits.reserve_s
    remaining, removed = list(chains), list[tuple[int, PlannedLeg]]()
    for number in range(len(remaining) - 1, -1, -1):
        while _total(remaining, limits.nodes) > limit and (leg := _next(remaining[number], limits.drop)):
            removed.append((number, leg))
            remaining[number] = remaining[number].without(leg)
    while remaining and _total(remaining, limits.nodes) > limit:
        remaining.pop()
        dropped.append(
            DroppedChain(chains[len(remaining)].chain, chains[len(remaining)].planned_s, _too_long(limits))
        )
    removed = [(number, leg) for number, leg in removed if number < len(remaining)]
    # The time of a dropped chain may be enough for legs of the others, the most valuable ones first.
    for candidate in removed[::-1]:
        rest = [other for other in removed if other is not candidate]
        trial = [*remaining]
        trial[candidate[0]] = chains[candidate[0]]
        for number, leg in rest:
            if number == candidate[0]:
                trial[number] = trial[number].without(leg)
        if _total(trial, limits.nodes) <= limit:
            remaining, removed = trial, rest
    return remaining, removed


def _too_long(limits: Limits) -> str:
    return f"all chains take more than {minutes(limits.total_s - limits.reserve_s)} min on {limits.nodes} nodes"


def _fit_one(
    chain: PlannedChain, limits: Limits, legs: list[DroppedLeg], dropped: list[DroppedChain]
) -> PlannedChain | None:
    """The chain within its own limit; None if it does not fit, also without its optional legs."""
    if chain.nodes > limits.nodes:
        why = f"it needs {chain.nodes} nodes, the budget has {limits.nodes}"
        dropped.append(DroppedChain(chain.chain, chain.planned_s, why))
        return None
    limit = min(limits.chain_s, limits.total_s - limits.reserve_s)
    dropped_legs, small = [], chain
    while small.planned_s > limit and (leg := _next(small, limits.drop)):
        dropped_legs.append(_dropped(small, leg, f"the chain takes more than {minutes(limit)} min"))
        small = small.without(leg)
    if small.planned_s > limit:
        least = f"{minutes(small.planned_s)} min"
        dropped.append(
            DroppedChain(
                chain.chain, chain.planned_s, f"it takes {least} at least, the limit is {minutes(limit)} min"
            )
        )
        return None
    legs += dropped_legs
    return small


def _next(chain: PlannedChain, drop: Sequence[str]) -> PlannedLeg | None:
    """The leg to drop next; None if every inference step has one leg only."""

    def order(leg: PlannedLeg) -> tuple[int, float]:
        rank = next((number for number, glob in enumerate(drop) if fnmatchcase(leg.name, glob)), len(drop))
        return rank, -leg.estimate.planned

    free = [leg for step in chain.steps if len(step.legs) > 1 for leg in step.legs]
    return min(free, key=order, default=None)


def _dropped(chain: PlannedChain, leg: PlannedLeg, because: str) -> DroppedLeg:
    return DroppedLeg(chain.chain, leg.step, leg.id, leg.estimate.planned, because)


def _starts(chains: Sequence[PlannedChain], nodes: int) -> list[float]:
    """The predicted start of each chain: in order, as soon as enough nodes are free."""
    free = [0.0] * nodes
    starts = []
    for chain in chains:
        free.sort()
        begin = free[chain.nodes - 1]
        starts.append(begin)
        free[: chain.nodes] = [begin + chain.planned_s] * chain.nodes
    return starts


def _total(chains: Sequence[PlannedChain], nodes: int) -> float:
    starts = _starts(chains, nodes)
    return max((begin + chain.planned_s for begin, chain in zip(starts, chains, strict=True)), default=0.0)
