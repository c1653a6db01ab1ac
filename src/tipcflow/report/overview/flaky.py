"""Flaky chains: equal runs with different outcomes, and how often, with a confidence interval."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Run, Status
from tipcflow.report.overview.node_history import NodeKey, shown_names

# Standard normal quantile of a two-sided 95 % interval.
_Z = 1.959963984540054
_EXAMPLES = 3


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Rate(_Model):
    """A share of runs with its 95 % Wilson interval."""

    hits: int
    runs: int
    rate: float
    low: float
    high: float


class Example(_Model):
    """A red run, and a green run of the same chain, mode, environment class, framework, suite content and file."""

    red: str
    green: str
    status: Status
    reason: str
    at: float


class FlakyChain(_Model):
    """A chain with repeats.

    Attributes:
        groups: number of groups of equal runs; `mixed` of them have both outcomes.
        disagreeing: runs whose outcome is the rarer one of their group, of all runs in the groups.
    """

    chain: str
    groups: int
    mixed: int
    disagreeing: Rate
    examples: tuple[Example, ...] = ()


class FlakyNode(_Model):
    """A node.

    Attributes:
        infrastructure: runs on it that ended as `infra_failure`, of all its ended runs.
        red_elsewhere_green: red runs on it whose equal run passed, on any node, of its runs that have an equal
            run; None if no run has one.
    """

    cluster: str
    node: str
    infrastructure: Rate
    red_elsewhere_green: Rate | None


class Proposal(_Model):
    """A check that passes and fails on the same commit: a user may quarantine it.

    Attributes:
        failed: red runs with it, of all runs of the chain in this mode and environment class in groups with both
            outcomes.
        run: the newest of these red runs.
        command: the command that quarantines it; owner and reason are left to the user.
    """

    chain: str
    mode: str
    environment: str
    check: str
    step: str
    leg: str
    metric: str
    signature: str
    failed: Rate
    run: str
    command: str


class Flaky(_Model):
    """Everything that the page and the command show.

    Attributes:
        days: the period.
        repeated: number of chains with repeats, the only ones that can be found to be flaky.
        chains: chains with both outcomes, the surest first (highest lower bound).
        nodes: nodes with the highest lower bound of their rate first.
        proposals: failures that a user may quarantine, the surest first.
    """

    schema_version: int = 1
    at: float
    days: float
    repeated: int
    chains: tuple[FlakyChain, ...]
    nodes: tuple[FlakyNode, ...]
    proposals: tuple[Proposal, ...] = ()

    @property
    def node_names(self) -> dict[NodeKey, str]:
        """(cluster, node) -> its name, with its cluster if nodes of several clusters have that name."""
        return shown_names((row.cluster, row.node) for row in self.nodes)


def wilson(hits: int, runs: int) -> Rate:
    """Return a share with its 95 % Wilson score interval (E. B. Wilson, JASA 22, 1927); runs > 0."""
    share, square = hits / runs, _Z * _Z
    middle = share + square / (2 * runs)
    spread = _Z * sqrt(share * (1 - share) / runs + square / (4 * runs * runs))
    scale = 1 + square / runs
    # Rounding must not lead out of the interval [0, 1] or exclude the share itself.
    low, high = max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
    return Rate(hits=hits, runs=runs, rate=share, low=min(low, share), high=max(high, share))


@dataclass
class Correction:
    """What the counts of a chain change by; as in `FlakyChain`."""

    groups: int = 0
    mixed: int = 0
    runs: int = 0
    disagreeing: int = 0

    def add(self, members: Sequence[Run], green: frozenset[Status], sign: int) -> bool:
        """Add or subtract a group of runs; returns whether it has both outcomes."""
        good = sum(run.status in green for run in members)
        rare = min(good, len(members) - good)
        if len(members) > 1:
            self.groups += sign
            self.mixed += sign * (rare > 0)
            self.runs += sign * len(members)
            self.disagreeing += sign * rare
        return rare > 0


def split_by_file(
    mixed: Sequence[Run], files: Mapping[str, str], green: frozenset[Status]
) -> tuple[list[Run], dict[str, Correction]]:
    """Separate runs whose suite files differ: these do not repeat each other.

    Args:
        mixed: all runs of groups with both outcomes, oldest first.
        files: run -> what its suite file sets, as text; runs without are alike.

    Returns:
        The runs of groups that still have both outcomes, in the same order, and chain -> correction.
    """
    corrections: dict[str, Correction] = defaultdict(Correction)
    remaining = set()
    for members in _groups(mixed, {}):
        corrections[members[0].chain].add(members, green, -1)
    for members in _groups(mixed, files):
        if corrections[members[0].chain].add(members, green, 1):
            remaining |= {run.id for run in members}
    return [run for run in mixed if run.id in remaining], corrections


def _groups(runs: Sequence[Run], files: Mapping[str, str]) -> Iterable[list[Run]]:
    """Return the groups of equal runs."""
    groups: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        content = (run.suite_commit, run.suite_sha256, files.get(run.id, ""))
        groups[run.chain, run.mode, run.environment, run.framework, *content].append(run)
    return groups.values()


def examples_of(
    runs: Sequence[Run], green: frozenset[Status], files: Mapping[str, str]
) -> dict[str, tuple[Example, ...]]:
    """Return chain -> its newest examples.

    Args:
        runs: all runs of groups with both outcomes, oldest first.
        files: as in `split_by_file`.
    """
    examples: dict[str, list[Example]] = defaultdict(list)
    for members in _groups(runs, files):
        passed = [run for run in members if run.status in green]
        for run in members:
            if run.status is not None and run.status not in green and passed:
                near = min(passed, key=lambda other: abs(other.created_at - run.created_at))
                examples[run.chain].append(
                    Example(red=run.id, green=near.id, status=run.status, reason=run.reason, at=run.created_at)
                )
    return {
        chain: tuple(sorted(of_chain, key=lambda example: -example.at)[:_EXAMPLES])
        for chain, of_chain in examples.items()
    }


def nodes_of(
    counts: Iterable[tuple[str, tuple[str, ...], Status, int]],
    mixed: Iterable[Run],
    green: frozenset[Status],
    repeated: Iterable[tuple[str, tuple[str, ...], int]] = (),
) -> tuple[FlakyNode, ...]:
    """Return the nodes, worst first.

    Args:
        counts: (cluster, nodes, status, number of runs); a run on several nodes counts for each of them.
        mixed: all runs of groups with both outcomes.
        repeated: (cluster, nodes, number of runs) of runs that have an equal run.
    """
    runs: Counter[NodeKey] = Counter()
    infra: Counter[NodeKey] = Counter()
    red: Counter[NodeKey] = Counter()
    equal: Counter[NodeKey] = Counter()
    for cluster, names, count in repeated:
        for name in names:
            equal[cluster, name] += count
    for cluster, names, status, count in counts:
        for name in names:
            runs[cluster, name] += count
            infra[cluster, name] += count if status is Status.INFRA_FAILURE else 0
    for run in mixed:
        for name in run.nodes:
            red[run.cluster, name] += run.status not in green
    nodes = [
        FlakyNode(
            cluster=node[0],
            node=node[1],
            infrastructure=wilson(infra[node], total),
            red_elsewhere_green=wilson(red[node], equal[node]) if equal[node] else None,
        )
        for node, total in runs.items()
    ]
    return tuple(sorted(nodes, key=_badness))


def _badness(row: FlakyNode) -> tuple[float, float, str, str]:
    return -row.infrastructure.low, -row.infrastructure.rate, row.node, row.cluster
