"""Attribution of a regression to a degraded node instead of the model, by the node's own probes only."""

from collections import defaultdict
from dataclasses import dataclass

from tipcflow.check.baseline.node_health import Health, health_of
from tipcflow.check.context import CheckContext
from tipcflow.check.select import repeats_of
from tipcflow.domain import Facts, StepKind, plain_metric, without_repeat
from tipcflow.domain.numbers.metrics import metric

# A busy node may slow the model down more than a probe, but at most by this factor.
_AT_MOST = 2.0


@dataclass(frozen=True)
class Excuses:
    """Slowdowns that the run's nodes explain.

    Attributes:
        places: 'step|leg|metric' -> the nodes of the measurement.
    """

    facts: Facts
    health: Health
    places: dict[str, frozenset[str]]

    def node(self, key: str, cost: float, limit: float) -> str:
        """Return why a slow node explains a slower speed; '' if none does.

        The node's probes must be slow in the same step. The slowest node limits a training on several nodes; any
        other value must come from slow nodes only.

        Args:
            cost: how many times worse than the baseline, above 1.
            limit: relative change that is noise.
        """
        step, _, name = key.split("|")
        sick = {node: one for node, one in self.health.sick.items() if step in one.steps}
        if metric(plain_metric(name)).family != "speed" or not sick:
            return ""
        where = self.places.get(key, frozenset())
        repeats = repeats_of(self.facts, step)
        if any(one.kind is StepKind.TRAIN and len(one.nodes) > 1 for one in repeats):
            where = frozenset(node for one in repeats for node in one.nodes)
        elif not where or where - set(sick):
            return ""
        blamed = where & set(sick)
        if not blamed:
            return ""
        worst = max((sick[node] for node in blamed), key=lambda one: one.factor)
        if cost - 1 > _AT_MOST * (worst.factor - 1) + limit:
            return ""
        return f"but node {worst.node} itself was {worst.factor:.2f} x slower ({worst.probe}): node_health"


def excuses_of(facts: Facts, context: CheckContext) -> Excuses:
    """Return the slowdowns that the nodes of a run explain."""
    places: dict[str, set[str]] = defaultdict(set)
    for one in facts.measurements:
        places[f"{without_repeat(one.step)}|{one.leg}|{one.metric}"].add(one.node)
    health = health_of(facts, context)
    return Excuses(facts, health, {key: frozenset(nodes) for key, nodes in places.items()})
