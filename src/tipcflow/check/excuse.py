"""Is a change for the worse the node's doing rather than the model's?"""

from collections import defaultdict
from dataclasses import dataclass

from tipcflow.check.context import CheckContext
from tipcflow.check.node_health import Health, health_of
from tipcflow.check.node_speed import node_factor
from tipcflow.check.select import repeats_of
from tipcflow.domain import Facts, Phase, StepKind, plain_metric, without_repeat
from tipcflow.domain.metrics import metric

# The model's own work may suffer more from a busy node than reading data does, but not without end.
_AT_MOST = 2.0
# And a node that was hardly slower explains nothing.
_AT_LEAST = 0.5


@dataclass(frozen=True)
class Excuses:
    """What the run's nodes explain.

    Attributes:
        factor: by how much everything was slower at work that is not the model's (`node_factor`).
        places: 'step|leg|metric' (ranks as they are) -> the nodes that the number comes from.
    """

    facts: Facts
    health: Health
    factor: float
    places: dict[str, frozenset[str]]

    def node(self, key: str, cost: float, limit: float) -> str:
        """Why a sick node explains that a number is worse; '' when it does not.

        A training of several nodes goes as fast as its slowest; anything else must come from sick nodes alone.
        How much slower a speed may be follows from how much slower the node was; memory just has to be its own.

        Args:
            cost: how many times worse than the baseline, above 1.
            limit: relative change that is noise.
        """
        step, _, name = key.split("|")
        sick = self.health.sick
        where = self.places.get(key, frozenset())
        gang = any(one.kind is StepKind.TRAIN and len(one.nodes) > 1 for one in repeats_of(self.facts, step))
        family = metric(plain_metric(name)).family
        together = gang and family == "speed"
        blamed = sorted(where & set(sick))
        if together:
            nodes = {node for one in repeats_of(self.facts, step) for node in one.nodes}
            blamed = sorted(nodes & set(sick))
        elif not where or where - set(sick):
            return ""
        if not blamed or family not in ("speed", "memory"):
            return ""
        worst = max((sick[node] for node in blamed), key=lambda one: one.factor)
        if family == "speed" and cost - 1 > _AT_MOST * (worst.factor - 1) + limit:
            return ""
        return (
            f"but node {worst.node} was {worst.factor:.2f} x slower at work that is not the model's: node_health"
        )

    def busy(self, name: str, cost: float, limit: float) -> str:
        """Why the nodes' own slowness explains that a speed is worse; '' when it does not."""
        enough = cost / self.factor - 1 <= limit and self.factor - 1 >= _AT_LEAST * (cost - 1)
        if metric(plain_metric(name)).family != "speed" or not enough:
            return ""
        return f"but the node itself was {self.factor:.2f} x slower at reading data and starting processes"


def excuses_of(facts: Facts, context: CheckContext) -> Excuses:
    """What the nodes of a run explain."""
    places: dict[str, set[str]] = defaultdict(set)
    for one in facts.measurements:
        name = one.metric
        if one.phase is Phase.RESOURCE and metric(name).family == "memory":
            name += f".rank{one.rank}" if one.rank >= 0 else ".all"
        places[f"{without_repeat(one.step)}|{one.leg}|{name}"].add(one.node)
    return Excuses(
        facts,
        health_of(facts, context),
        node_factor(facts, context),
        {key: frozenset(nodes) for key, nodes in places.items()},
    )
