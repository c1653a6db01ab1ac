"""Which legs and chains fit a time budget, and what stays unproven without the others.

Public: `__all__`.
"""

from tipcflow.budget.estimates import Estimate, Samples, estimate
from tipcflow.budget.planner import (
    DroppedChain,
    DroppedLeg,
    Fit,
    FittedChain,
    Limits,
    PlannedChain,
    PlannedLeg,
    PlannedStep,
    fit,
    planned_chain,
    values,
)

__all__ = [
    "DroppedChain",
    "DroppedLeg",
    "Estimate",
    "Fit",
    "FittedChain",
    "Limits",
    "PlannedChain",
    "PlannedLeg",
    "PlannedStep",
    "Samples",
    "estimate",
    "fit",
    "planned_chain",
    "values",
]
