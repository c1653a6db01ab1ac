"""Was one of the nodes slow at everything, so that the run says nothing about the model's speed?

A slower model leaves alone what is not its work: reading data, starting processes (`node_speed.is_control`). A
node that is slow at that, and at most of what was measured on it, while other nodes are not, is to blame itself.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import Any

from tipcflow.check.context import CheckContext
from tipcflow.check.node_speed import is_control
from tipcflow.check.select import passed
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status, StepKind, numbers_of, without_repeat
from tipcflow.domain.metrics import metric

NAME = "node_health"
# So many kinds of numbers must be slower, and so many of them must be none of the model's work; one of these is
# enough where another node did the same in its usual time.
_MANY, _CONTROLS, _WITH_WITNESS = 3, 2, 1
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True)
class Kind:
    """One kind of number on one node, e.g. `wall_time of prepare`: how much slower it was, 1 for as always."""

    name: str
    control: bool
    factor: float
    slower: bool


@dataclass(frozen=True)
class SickNode:
    """A node that is to blame: `factor` times slower at what is not the model's work."""

    node: str
    factor: float
    slower: int
    of: int


@dataclass(frozen=True)
class Health:
    """What is known of the run's nodes.

    Attributes:
        kinds: node -> what was measured there and could be compared.
        sick: node -> how sick, of those that are to blame.
        everywhere: the nodes, when all of them were slow: then it is none of them in particular.
    """

    kinds: dict[str, list[Kind]]
    sick: dict[str, SickNode]
    everywhere: tuple[str, ...] = ()


def health_of(facts: Facts, context: CheckContext) -> Health:
    """Which nodes were slow at most of what they did, compared with the accepted earlier runs."""
    by_node: dict[str, list[Measurement]] = defaultdict(list)
    for timed in facts.measurements:
        if metric(timed.metric).family == "speed" and timed.phase is not Phase.EVAL and timed.node:
            by_node[timed.node].append(timed)
    kinds = {node: _kinds(measured, facts, context) for node, measured in sorted(by_node.items())}
    usual = {kind.name for found in kinds.values() for kind in found if kind.control and not kind.slower}
    share = context.policy.node_health.share
    sick = {node: one for node, found in kinds.items() if (one := _sick(node, found, usual, share))}
    witnesses = [node for node, found in kinds.items() if any(kind.control for kind in found)]
    if len(witnesses) > 1 and set(witnesses) <= set(sick):
        return Health(kinds, {}, tuple(sick))
    return Health(kinds, sick)


def node_health(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result for the run: `infra_failure` names the nodes that were slow at everything."""
    health = health_of(facts, context)
    values: dict[str, Any] = {
        "nodes": {
            node: {
                "slower": sum(kind.slower for kind in found),
                "of": len(found),
                "factors": {kind.name: kind.factor for kind in found},
            }
            for node, found in health.kinds.items()
        },
        "sick": sorted(health.sick),
    }
    status, reason = _answer(health, context)
    gating = context.policy.node_health.gating
    return [CheckResult(check=NAME, status=status, reason=reason, gating=gating, values=values)]


def _answer(health: Health, context: CheckContext) -> tuple[Status, str]:
    if health.sick:
        told = [
            f"node {one.node} was {one.factor:.2f} x slower than usual at work that is not the model's, "
            f"and slower in {one.slower} of {one.of} kinds of numbers"
            for one in health.sick.values()
        ]
        return Status.INFRA_FAILURE, "; ".join(told)
    if not any(health.kinds.values()):
        had, needed = len(context.history), context.policy.min_history
        reason = f"{had} of {needed} earlier runs" if had < needed else "nothing was timed that earlier runs timed"
        return Status.INSUFFICIENT_DATA, reason
    counted = {node: found for node, found in health.kinds.items() if found}
    shown = f"{sum(map(len, counted.values()))} kinds of numbers on {len(counted)} nodes"
    if health.everywhere:
        return Status.PASS, f"{shown}: all nodes were slower, none in particular"
    return Status.PASS, f"{shown}: no node was slow at everything"


def _kinds(measured: list[Measurement], facts: Facts, context: CheckContext) -> list[Kind]:
    """What was measured on a node and can be compared, by metric and kind of step."""
    steps = {without_repeat(step.id): step.kind for step in facts.plan.steps}
    kept = [one for one in measured if passed(facts, one.step, one.leg)]
    found: dict[tuple[str, StepKind], list[tuple[float, bool]]] = defaultdict(list)
    for key, value in numbers_of(kept).items():
        step, _, name = key.split("|")
        past = context.past(key)
        comparable = len(past) >= context.policy.min_history and median(past) > 0 and value > 0
        if comparable and step in steps:
            found[name, steps[step]].append(_compared(value, past, name, context))
    return [
        Kind(
            name=f"{name} of {kind.value}",
            control=is_control(name, kind),
            factor=median(factor for factor, _ in compared),
            slower=sum(slower for _, slower in compared) * 2 > len(compared),
        )
        for (name, kind), compared in sorted(found.items())
    ]


def _compared(value: float, past: list[float], name: str, context: CheckContext) -> tuple[float, bool]:
    """(how many times slower, whether that is beyond floor and noise)."""
    base = median(past)
    factor = value / base if metric(name).better == "lower" else base / value
    noise = _MAD_TO_SIGMA * median(abs(one - base) for one in past) / base
    limit = max(context.policy.floor_of(name), context.policy.node_health.sigmas * noise)
    return factor, math.isfinite(factor) and factor - 1 > limit


def _sick(node: str, kinds: list[Kind], usual: set[str], share: float) -> SickNode | None:
    slower = [kind for kind in kinds if kind.slower]
    controls = [kind for kind in kinds if kind.control]
    slow_controls = [kind for kind in controls if kind.slower]
    witness = any(kind.name in usual for kind in slow_controls)
    if len(slower) < max(_MANY, share * len(kinds)):
        return None
    if len(slow_controls) < max(_WITH_WITNESS if witness else _CONTROLS, share * len(controls)):
        return None
    factor = median(kind.factor for kind in slow_controls)
    return SickNode(node, factor, len(slower), len(kinds))
