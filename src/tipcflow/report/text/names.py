"""The shortest unambiguous names of steps."""

from tipcflow.domain import Plan
from tipcflow.domain.run.names import StepId


def short_step(plan: Plan | None, step: str) -> str:
    """`train` for `<variant>/train` if the plan has one variant (shown in the title); otherwise the full id."""
    if plan is None or len({planned.variant for planned in plan.steps if planned.variant}) != 1:
        return step
    return StepId.parse(step).name


def variant_of(plan: Plan | None) -> str:
    """The name of the plan's only variant; '' when there are several."""
    names = {planned.variant for planned in plan.steps if planned.variant} if plan is not None else set()
    return names.pop() if len(names) == 1 else ""


def shorten(plan: Plan | None, text: str) -> str:
    """Replace the step ids of a plan in a text by their short names."""
    for step in plan.steps if plan is not None else ():
        text = text.replace(step.id, short_step(plan, step.id))
    return text
