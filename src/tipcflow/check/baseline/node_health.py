"""Was a node degraded, so that the run cannot measure the model's speed?

A node is degraded if its own probes (`node_speed`) and most metrics measured there were slow in a step. Metrics
of the suite's code, such as the time to read data, are not evidence about a node.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from tipcflow.check.baseline.node_speed import Probed, probed
from tipcflow.check.context import CheckContext
from tipcflow.check.select import passed
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status, StepKind, numbers_of, without_repeat
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.spread import MAD_TO_SIGMA
from tipcflow.domain.numbers.units import counted

NAME = "node_health"


@dataclass(frozen=True)
class Kind:
    """One kind of metric on one node, for example `batch_cost of train`: its slowdown factor, 1 for unchanged."""

    name: str
    factor: float
    slower: bool


@dataclass(frozen=True)
class DegradedNode:
    """A degraded node.

    Attributes:
        factor: slowdown factor of its slowest probe.
        probe: that probe.
        steps: steps with slow probes, without repeats.
        slower, of: number of slower kinds of metrics in these steps, and of all kinds.
    """

    node: str
    factor: float
    probe: str
    steps: frozenset[str]
    slower: int
    of: int

    @property
    def slowdown(self) -> str:
        """The slowest probe and its factor, as text."""
        return f"probe {self.probe.removeprefix('probe.')} {self.factor:.2f}x slower"


@dataclass(frozen=True)
class Health:
    """Health of the run's nodes.

    Attributes:
        probes: node -> step -> results of its probes.
        kinds: node -> metrics measured there, in the steps with slow probes.
        degraded: degraded node -> its degradation.
    """

    probes: dict[str, dict[str, Probed]]
    kinds: dict[str, list[Kind]]
    degraded: dict[str, DegradedNode]


def health_of(facts: Facts, context: CheckContext) -> Health:
    """Return the nodes whose own probes were slower than in accepted earlier runs."""
    probes = probed(facts, context)
    kinds: dict[str, list[Kind]] = {}
    degraded_nodes = {}
    for node, steps in probes.items():
        slow = {step: entry for step, entry in steps.items() if entry.slow}
        if not slow:
            continue
        kinds[node] = _kinds(_timed(facts, node, slow), facts, context)
        slower = sum(kind.slower for kind in kinds[node])
        if slower and slower >= context.policy.node_health.share * len(kinds[node]):
            worst = max(slow.values(), key=lambda entry: entry.factor)
            probe = max(worst.slow, key=lambda name: worst.factors[name])
            degraded_nodes[node] = DegradedNode(
                node, worst.factor, probe, frozenset(slow), slower, len(kinds[node])
            )
    return Health(probes, kinds, degraded_nodes)


def node_health(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result for the run: `infra_failure` names the degraded nodes."""
    health = health_of(facts, context)
    values: dict[str, Any] = {
        "nodes": {
            node: {
                "probes": {step: entry.factors for step, entry in steps.items()},
                "factors": {kind.name: kind.factor for kind in health.kinds.get(node, ())},
            }
            for node, steps in health.probes.items()
        },
        "sick": sorted(health.degraded),
    }
    status, reason = _answer(facts, health, context)
    gating = context.policy.node_health.gating
    return [CheckResult(check=NAME, status=status, reason=reason, gating=gating, values=values)]


def _answer(facts: Facts, health: Health, context: CheckContext) -> tuple[Status, str]:
    if health.degraded:
        named = [
            f"node {degraded.node} degraded: {degraded.slowdown} ({', '.join(sorted(degraded.steps))}); "
            f"{degraded.slower} of {degraded.of} metrics slower"
            for degraded in health.degraded.values()
        ]
        return Status.INFRA_FAILURE, "; ".join(named)
    needed = context.policy.min_history
    if not health.probes:
        if len(context.history) < needed:
            return Status.INSUFFICIENT_DATA, f"{len(context.history)} of {needed} earlier runs for a comparison"
        had = max((len(past) for probes in context.probes.values() for past in probes.values()), default=0)
        if had < needed:
            return (
                Status.INSUFFICIENT_DATA,
                f"{had} of {needed} earlier runs with probes of these nodes for a comparison",
            )
        return Status.INSUFFICIENT_DATA, "the node runner's probes of this run are missing"
    slow = sorted(node for node, steps in health.probes.items() if any(entry.slow for entry in steps.values()))
    if slow:
        return Status.PASS, f"probes on {', '.join(slow)} were slow; the metrics of the run were not"
    return Status.PASS, f"probes of {counted(len(health.probes), 'node')}: none was slower than usual"


def _timed(facts: Facts, node: str, steps: dict[str, Probed]) -> list[Measurement]:
    return [
        measurement
        for measurement in facts.measurements
        if measurement.node == node
        and without_repeat(measurement.step) in steps
        and metric(measurement.metric).family == "speed"
        and measurement.phase is not Phase.EVAL
    ]


def _kinds(measured: list[Measurement], facts: Facts, context: CheckContext) -> list[Kind]:
    """What was measured on a node and can be compared, by metric and kind of step."""
    steps = {without_repeat(step.id): step.kind for step in facts.plan.steps}
    usable = [measurement for measurement in measured if passed(facts, measurement.step, measurement.leg)]
    by_kind: dict[tuple[str, StepKind], list[tuple[float, bool]]] = defaultdict(list)
    for key, value in numbers_of(usable).items():
        past = context.past(key)
        if key.metric.endswith(SLOWEST):
            continue  # the same samples
        comparable = len(past) >= context.policy.min_history and median(past) > 0 and value > 0
        if comparable and key.step in steps:
            by_kind[key.metric, steps[key.step]].append(_compared(value, past, key.metric, context))
    return [
        Kind(
            name=f"{name} of {kind.value}",
            factor=median(factor for factor, _ in compared),
            slower=sum(slower for _, slower in compared) * 2 > len(compared),
        )
        for (name, kind), compared in sorted(by_kind.items())
    ]


def _compared(value: float, past: list[float], name: str, context: CheckContext) -> tuple[float, bool]:
    """(how many times slower, whether that is beyond floor and noise)."""
    base = median(past)
    factor = value / base if metric(name).better == "lower" else base / value
    noise = MAD_TO_SIGMA * median(abs(past_value - base) for past_value in past) / base
    limit = max(context.policy.floor_of(name), context.policy.node_health.sigmas * noise)
    return factor, math.isfinite(factor) and factor - 1 > limit
