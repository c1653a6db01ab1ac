"""How much slower was the run's machine itself, at work that is not the model's?

Reading and preparing data, importing the framework: what takes longer there took longer because the node was busy
or is slow. A slower model leaves these alone.
"""

import math
from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.domain import Facts, Status, StepKind, medians_of

# Metrics whose time is not spent in the model.
_CONTROLS = frozenset({"preprocess_time", "reader_cost"})
# Steps that mostly start processes and read files.
_CONTROL_STEPS = frozenset({StepKind.PREPARE, StepKind.EXPORT})
# One control alone may be wrong.
_NEEDED = 2


def node_factor(facts: Facts, context: CheckContext) -> float:
    """The median of value / baseline over the controls, never below 1; 1 where there are too few of them."""
    steps = {step.id: step.kind for step in facts.plan.steps}
    ratios = []
    for key, value in medians_of(facts.measurements).items():
        step, leg, name = key.split("|")
        startup = name == "wall_time" and steps.get(step) in _CONTROL_STEPS
        if not startup and name not in _CONTROLS:
            continue
        if (
            facts.step_status.get(step) is not Status.PASS
            and facts.leg_status.get(f"{step}/{leg}") is not Status.PASS
        ):
            continue
        past = [run.medians[key] for run in context.history if key in run.medians][-context.policy.history :]
        if len(past) >= context.policy.min_history and median(past) > 0 and math.isfinite(value / median(past)):
            ratios.append(value / median(past))
    return max(1.0, median(ratios)) if len(ratios) >= _NEEDED else 1.0
