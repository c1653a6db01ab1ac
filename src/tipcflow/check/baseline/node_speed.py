"""Node speed: the node runner's probes of CPU, memory and disk, timed before and after a job.

The probes run neither model nor suite code, so only they show that a node, not the tested code, is slow.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.domain import Facts, last_attempts, without_repeat
from tipcflow.domain.numbers.metrics import PROBES
from tipcflow.domain.numbers.spread import MAD_TO_SIGMA


@dataclass(frozen=True)
class Probed:
    """Probes of one step's job on one node, compared with earlier runs on that node.

    Attributes:
        factors: probe -> slowdown factor on this node.
        slow: the probes that are slower by more than their noise.
    """

    factors: dict[str, float]
    slow: tuple[str, ...]

    @property
    def factor(self) -> float:
        """Return the slowdown factor of the slowest slow probe; 1 without slow probes."""
        return max((self.factors[name] for name in self.slow), default=1.0)


def probed(facts: Facts, context: CheckContext) -> dict[str, dict[str, Probed]]:
    """Node -> step (without its repeat) -> its speed according to the probes; only comparable values."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for measurement in last_attempts(facts.measurements):
        if measurement.metric in PROBES:
            values[measurement.node, without_repeat(measurement.step)][measurement.metric].append(
                measurement.value
            )
    by_node: dict[str, dict[str, Probed]] = {}
    for (node, step), by_name in sorted(values.items()):
        factors, slow = {}, []
        for name, timed in sorted(by_name.items()):
            past = context.probes.get(node, {}).get(name, ())
            base = median(past) if len(past) >= context.policy.min_history else 0.0
            if base > 0:
                factors[name] = median(timed) / base
                noise = MAD_TO_SIGMA * median(abs(value - base) for value in past) / base
                limit = max(context.policy.node_health.probe, context.policy.node_health.sigmas * noise)
                slow += [name] if factors[name] - 1 > limit else []
        if factors:
            by_node.setdefault(node, {})[step] = Probed(factors, tuple(slow))
    return by_node
