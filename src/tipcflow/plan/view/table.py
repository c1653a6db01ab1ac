"""Plan table: one row per step, shown before a run."""

from tipcflow.domain import Frozen, Plan


class PlanRow(Frozen):
    """One step.

    Attributes:
        nodes: names in rank order.
        processes: per node.
        legs: number of inference combinations that will run.
        not_run: reason -> number of legs (or the whole step) that will not run.
    """

    variant: str
    step: str
    kind: str
    nodes: tuple[str, ...]
    processes: int
    legs: int = 0
    not_run: dict[str, int] = {}


def plan_rows(plan: Plan) -> list[PlanRow]:
    """Return one row per step, in the plan's order."""
    rows = []
    for step in plan.steps:
        reasons: dict[str, int] = {}
        for leg in step.legs:
            if leg.not_run:
                reasons[leg.not_run] = reasons.get(leg.not_run, 0) + 1
        if step.not_run and not step.legs:
            reasons[step.not_run] = 1
        rows.append(
            PlanRow(
                variant=step.variant,
                step=step.id,
                kind=step.kind.value,
                nodes=step.nodes,
                processes=step.slots,
                legs=len(step.legs) - sum(reasons.values()) if step.legs else 0,
                not_run=reasons,
            )
        )
    return rows
