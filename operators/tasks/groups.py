"""Which steps of a run's plan a task of the graph does.

The graph is drawn from the catalog, the plan is made at the ref that is tested: the two need not be the same.
"""

from collections.abc import Sequence

from tipcflow.domain import Plan, Step, StepKind


def steps_of(plan: Plan, kind: StepKind, group: int, variants: Sequence[str]) -> list[Step]:
    """The plan's steps of one kind that variant group `group` does, in the plan's order.

    Steps of variants that the graph has no group for (new at this ref, or of a mode without training) are done by
    the first group, so that nothing is left out.

    Args:
        variants: the ids of the graph's variants, one per group.
    """
    own = variants[group] if group < len(variants) else None
    return [
        step
        for step in plan.steps
        if step.kind is kind and (step.variant == own or (group == 0 and step.variant not in variants))
    ]


def why_nothing(plan: Plan, kind: StepKind, group: int, variants: Sequence[str], node: str | None) -> str:
    """Why a group has no step of a kind (on a node), for a person."""
    if node is not None and steps_of(plan, kind, group, variants):
        return f"node {node} has no part in this variant"
    planned = {variant.id for variant in plan.variants}
    if group < len(variants) and variants[group] not in planned and planned:
        return f"the params file at this ref has no variant {variants[group]} any more"
    return f"mode {plan.mode} has no {kind.value} here"


def before_on_its_slots(plan: Plan, step: Step) -> Step | None:
    """The CPU inference that a GPU inference has to wait for, since both want slots of one node; None for none.

    The graph has both at once: on one node each would measure the other's load, and the node refuses a slot that
    is taken.
    """
    if step.kind is not StepKind.INFER_GPU:
        return None
    for other in plan.steps:
        same = (other.variant, other.repeat) == (step.variant, step.repeat)
        if other.kind is StepKind.INFER_CPU and same and set(other.nodes) & set(step.nodes):
            return other
    return None
