"""Step names as short as they can be without becoming ambiguous."""

from tipcflow.domain import Plan


def short_step(plan: Plan | None, step: str) -> str:
    """`train` for `<variant>/train` when the plan has one variant (the title says it then); else as it is."""
    if plan is None or len({one.variant for one in plan.steps if one.variant}) != 1:
        return step
    return step.rsplit("/", 1)[-1]


def variant_of(plan: Plan | None) -> str:
    """The only variant's name, '' when there are several."""
    names = {one.variant for one in plan.steps if one.variant} if plan is not None else set()
    return names.pop() if len(names) == 1 else ""
