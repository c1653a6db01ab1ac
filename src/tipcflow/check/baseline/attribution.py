"""Attribution of a regression to a degraded node instead of the model, by the node's own probes only."""

from collections import defaultdict
from dataclasses import dataclass

from tipcflow.check.baseline.node_health import Health, health_of
from tipcflow.check.context import CheckContext
from tipcflow.check.select import repeats_of
from tipcflow.domain import Facts, MetricKey, StepKind, without_repeat
from tipcflow.domain.numbers.metrics import metric

# A busy node may slow the model down more than a probe, but at most by this factor.
_AT_MOST = 2.0


@dataclass(frozen=True)
class Attribution:
    """Slowdowns that the run's nodes explain.

    Attributes:
        places: metric -> the nodes of the measurement.
    """

    facts: Facts
    health: Health
    places: dict[MetricKey, frozenset[str]]

    def node(self, key: MetricKey, cost: float, limit: float) -> str:
        """Return why a slow node explains a slower speed; '' if none does.

        The node's probes must be slow in the same step. The slowest node limits a training on several nodes; any
        other value must come from slow nodes only.

        Args:
            cost: how many times worse than the baseline, above 1.
            limit: relative change that is noise.
        """
        degraded_nodes = {
            node: degraded for node, degraded in self.health.degraded.items() if key.step in degraded.steps
        }
        if metric(key.plain_metric).family != "speed" or not degraded_nodes:
            return ""
        where = self.places.get(key, frozenset())
        repeats = repeats_of(self.facts, key.step)
        if any(step.kind is StepKind.TRAIN and len(step.nodes) > 1 for step in repeats):
            where = frozenset(node for step in repeats for node in step.nodes)
        elif not where or where - set(degraded_nodes):
            return ""
        named = where & set(degraded_nodes)
        if not named:
            return ""
        worst = max((degraded_nodes[node] for node in named), key=lambda degraded: degraded.factor)
        if cost - 1 > _AT_MOST * (worst.factor - 1) + limit:
            return ""
        return f"explained by node {worst.node}: {worst.slowdown} (node_health)"


def attribution_of(facts: Facts, context: CheckContext) -> Attribution:
    """Return the slowdowns that the nodes of a run explain."""
    places: dict[MetricKey, set[str]] = defaultdict(set)
    for measurement in facts.measurements:
        places[MetricKey(without_repeat(measurement.step), measurement.leg, measurement.metric)].add(
            measurement.node
        )
    health = health_of(facts, context)
    return Attribution(facts, health, {key: frozenset(nodes) for key, nodes in places.items()})
