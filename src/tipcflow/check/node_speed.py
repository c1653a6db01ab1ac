"""How much slower was the run's machine itself, at work that is not the model's?

Reading and preparing data, importing the framework: what takes longer there took longer because the node was busy
or is slow. A slower model leaves these alone.
"""

import math
from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.check.select import passed
from tipcflow.domain import Facts, StepKind, numbers_of, without_repeat

# Metrics whose time is not spent in the model.
_CONTROLS = frozenset({"preprocess_time", "reader_cost"})
# Steps that mostly start processes and read files.
_CONTROL_STEPS = frozenset({StepKind.PREPARE, StepKind.EXPORT})
# One control alone may be wrong.
_NEEDED = 2


def is_control(name: str, kind: StepKind) -> bool:
    """Whether a number says how fast the node is rather than the model."""
    return name in _CONTROLS or (name == "wall_time" and kind in _CONTROL_STEPS)


def node_factor(facts: Facts, context: CheckContext) -> float:
    """The median of value / baseline over the controls, never below 1; 1 where there are too few of them."""
    steps = {without_repeat(step.id): step.kind for step in facts.plan.steps}
    ratios = []
    for key, value in numbers_of(one for one in facts.measurements if passed(facts, one.step, one.leg)).items():
        step, _, name = key.split("|")
        past = context.past(key)
        known = step in steps and is_control(name, steps[step]) and len(past) >= context.policy.min_history
        if known and median(past) > 0 and math.isfinite(value / median(past)):
            ratios.append(value / median(past))
    return max(1.0, median(ratios)) if len(ratios) >= _NEEDED else 1.0
