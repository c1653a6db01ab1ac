"""Assigns the steps of a run's plan to the tasks of the graph.

The graph is built from the catalog, the plan from the tested ref; the two may differ.
"""

from collections.abc import Sequence

from tipcflow.domain import Plan, Step, StepKind


def steps_of(plan: Plan, kind: StepKind, group: int, variants: Sequence[str]) -> list[Step]:
    """Return the plan's steps of one kind that variant group `group` runs, in plan order.

    Steps of variants without a group in the graph (new at this ref, or of a mode without training) belong to the
    first group, so that every step runs.

    Args:
        variants: variant ids of the graph, one per group.
    """
    own = variants[group] if group < len(variants) else None
    return [
        step
        for step in plan.steps
        if step.kind is kind and (step.variant == own or (group == 0 and step.variant not in variants))
    ]


def no_steps_reason(plan: Plan, kind: StepKind, group: int, variants: Sequence[str], node: str | None) -> str:
    """Return the reason why a group has no step of a kind (on a node)."""
    if node is not None and steps_of(plan, kind, group, variants):
        return f"this variant does not use node {node}"
    planned = {variant.id for variant in plan.variants}
    if group < len(variants) and variants[group] not in planned and planned:
        return f"the params file at this ref no longer has variant {variants[group]}"
    return f"mode {plan.mode} has no {kind.value} step in this variant"


def before_on_its_slots(plan: Plan, step: Step) -> Step | None:
    """Return the CPU inference step that a GPU inference step must wait for because both use slots of one node.

    None if there is none. The graph starts both in parallel; on one node each would measure the other's load, and
    the node rejects a slot in use.
    """
    if step.kind is not StepKind.INFER_GPU:
        return None
    for other in plan.steps:
        same = (other.variant, other.repeat) == (step.variant, step.repeat)
        if other.kind is StepKind.INFER_CPU and same and set(other.nodes) & set(step.nodes):
            return other
    return None
