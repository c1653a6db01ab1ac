"""Which node is slower than its own history, and since when: by its probes, and by the chains that run on it."""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import BaseModel, ConfigDict

from tipcflow.domain.numbers.units import counted, first_names, percent, utc_minute

# The residual of a run: the median slowdown of its speeds, compared with their baselines.
CHAINS = "chains"
# A smaller lasting change of a node is within what other users of a machine cause.
FLOOR = 0.05
# (cluster, name of a node): clusters may name their nodes alike.
NodeKey = tuple[str, str]
# Older values of a series do not matter: the detector's window is shorter.
NEWEST = 500
# Chains on the other nodes slowed by this share of the change: then the code did, not the node.
_ELSEWHERE = 0.5


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a node in a run: seconds of a probe, or a slowdown; lower is better."""

    run: str
    at: float
    value: float


class NodeChange(_Model):
    """A lasting slowdown of a node, which its newest runs still show.

    Attributes:
        source: a probe (`cpu`, `memory`, `disk`), or `chains`.
        size: relative change, 0.2 is 20 % slower.
        elsewhere: of `chains`: the change of the other nodes in the same period; None without their runs.
        since, since_at: the first run of the new level, and its start.
        runs: number of runs on the node from then on.
    """

    node: str
    source: str
    size: float
    elsewhere: float | None = None
    since: str
    since_at: float
    runs: int


class NodeTrend(_Model):
    """One node.

    Attributes:
        runs: with a probe or a baseline, in the period.
        changes: present slowdowns, those of probes first, the largest first.
        is_slow: whether a probe shows a slowdown: only probes tell a slow node from slow code.
        doubtful: the runs since the first slowdown of a slow node, oldest first.
    """

    cluster: str
    node: str
    runs: int
    changes: tuple[NodeChange, ...] = ()
    is_slow: bool = False
    doubtful: tuple[str, ...] = ()


class NodeHistory(_Model):
    """All nodes with runs in a period, slow ones first."""

    schema_version: int = 1
    at: float
    days: float
    nodes: tuple[NodeTrend, ...]

    @property
    def slow(self) -> tuple[NodeTrend, ...]:
        """The nodes that are proposed for draining."""
        return tuple(node for node in self.nodes if node.is_slow)

    def name(self, trend: NodeTrend) -> str:
        """Return the name of a node, with its cluster if nodes of several clusters have that name."""
        return shown_names((each.cluster, each.node) for each in self.nodes)[trend.cluster, trend.node]

    @property
    def sentence(self) -> str:
        """One line."""
        number = counted(len(self.nodes), "node")
        slow = len(self.slow)
        verb = "is" if slow == 1 else "are"
        return f"{number} with runs in the last {self.days:g} days: {slow or 'none'} {verb} slower than before"


def shown_names(nodes: Iterable[NodeKey]) -> dict[NodeKey, str]:
    """Return node -> its name, with its cluster if nodes of several clusters have that name."""
    keys = set(nodes)
    alike = Counter(node for _, node in keys)
    return {(cluster, node): node if alike[node] == 1 else f"{cluster}/{node}" for cluster, node in keys}


def make_node_history(
    samples: Mapping[NodeKey, Mapping[str, Sequence[Sample]]], *, at: float, days: float
) -> NodeHistory:
    """Return the trends of nodes.

    Args:
        samples: (cluster, node) -> source -> values of its runs, oldest first.
    """
    nodes = [_trend(node, own, samples) for node, own in samples.items()]
    nodes.sort(
        key=lambda trend: (
            not trend.is_slow,
            -max((each.size for each in trend.changes), default=0.0),
            trend.node,
            trend.cluster,
        )
    )
    return NodeHistory(at=at, days=days, nodes=tuple(nodes))


def _trend(
    node: NodeKey, own: Mapping[str, Sequence[Sample]], samples: Mapping[NodeKey, Mapping[str, Sequence[Sample]]]
) -> NodeTrend:
    changes = []
    for source, values in own.items():
        change = _change(node[1], source, values)
        if change is None:
            continue
        if source == CHAINS:
            others = [each for other, known in samples.items() if other != node for each in known.get(CHAINS, ())]
            elsewhere = _shift(others, change.since_at)
            if elsewhere is not None and elsewhere >= _ELSEWHERE * change.size:
                continue
            change = change.model_copy(update={"elsewhere": elsewhere})
        changes.append(change)
    changes.sort(key=lambda each: (each.source == CHAINS, -each.size))
    probes = [each for each in changes if each.source != CHAINS]
    times = {sample.run: sample.at for values in own.values() for sample in values}
    begin = min((each.since_at for each in probes), default=float("inf"))
    doubtful = sorted((at, run) for run, at in times.items() if at >= begin)
    return NodeTrend(
        cluster=node[0],
        node=node[1],
        runs=len(times),
        changes=tuple(changes),
        is_slow=bool(probes),
        doubtful=tuple(run for _, run in doubtful),
    )


def _change(node: str, source: str, samples: Sequence[Sample]) -> NodeChange | None:
    """Return the slowdown that the newest samples show; None if there is none, or the node has recovered."""
    # The reports' models need no extra (`[run]`), the detector does.
    from tipcflow.check.detect import Gate
    from tipcflow.config.policy import DetectRule

    rule = DetectRule(floor=FLOOR)
    samples = samples[-NEWEST:]
    if not _may_be_slower([each.value for each in samples], rule.alone_runs):
        return None
    gate = Gate(higher_is_better=False, rule=rule)
    since: int | None = None
    before: float | None = None
    for index, sample in enumerate(samples):
        alert = gate.judge(index, sample.value, lambda: None)
        if alert is None:
            continue
        if alert.direction == "worse" and since is None:
            since, before = alert.since, median(each.value for each in samples[: alert.since])
        elif alert.direction == "better" and before is not None:
            level = median(each.value for each in samples[alert.since : index + 1])
            since, before = (None, None) if level <= before * (1 + FLOOR) else (since, before)
    if since is None or not before:
        return None
    size = median(each.value for each in samples[since:]) / before - 1
    if size < FLOOR:
        return None
    first = samples[since]
    return NodeChange(
        node=node, source=source, size=size, since=first.run, since_at=first.at, runs=len(samples) - since
    )


def _may_be_slower(values: Sequence[float], newest: int) -> bool:
    """Return whether the last values, at least `newest`, are slower than all before by the floor, for any split.

    Every slowdown is such a split. It takes a fiftieth of the gate's time, and most nodes are as fast as before.
    """
    before, after = _running_medians(values), _running_medians(values[::-1])[::-1]
    splits = range(1, len(values) - newest + 1)
    return any(after[split] >= before[split - 1] * (1 + FLOOR) for split in splits)


def _running_medians(values: Sequence[float]) -> list[float]:
    """Return the median of the first value, of the first two, and so on."""
    known: list[float] = []
    medians = []
    for value in values:
        insort(known, value)
        half = len(known) // 2
        medians.append(known[half] if len(known) % 2 else (known[half - 1] + known[half]) / 2)
    return medians


def _shift(samples: Iterable[Sample], begin: float) -> float | None:
    """Return the relative change of the median at a time; None without samples before and after."""
    sides: dict[bool, list[float]] = defaultdict(list)
    for sample in samples:
        sides[sample.at >= begin].append(sample.value)
    if not (sides[False] and sides[True]):
        return None
    return median(sides[True]) / median(sides[False]) - 1


def change_text(change: NodeChange) -> str:
    """A slowdown as text."""
    name = "chains" if change.source == CHAINS else f"probe {change.source}"
    text = f"{name} {percent(change.size)} slower since {utc_minute(change.since_at)} (run {change.since})"
    if change.elsewhere is not None:
        text += f", on other nodes {percent(change.elsewhere)}"
    return text


def advice(trend: NodeTrend) -> list[str]:
    """What a user may do about a slow node."""
    if not trend.is_slow:
        return ["only chains are slower: suspected, because no probe of the node is"] if trend.changes else []
    return [
        f"proposed: drain {trend.node} until the cause is fixed: tipcflow nodes drain {trend.node} --because '…'",
        f"doubtful: {counted(len(trend.doubtful), 'run')} since then: {first_names(trend.doubtful, 5)}",
    ]
