"""Keys of the suite file that decide which output of an inference leg is evidence."""

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.found import of_leg
from tipcflow.check.select import inference_steps
from tipcflow.domain import Evidence, Facts


def inference_hint(facts: Facts, context: CheckContext) -> str:
    """Return which keys to set in the suite file, as the end of a reason; '' if the suite file is not the cause.

    The first run of a suite whose legs all end with 0 and print nothing known is probably honest. If another leg
    or an earlier run printed a report or predictions, the suite file describes the output.
    """
    if not context.prints.inference or context.history:
        return ""
    kinds = {kind for step in inference_steps(facts) for leg in step.legs for kind in of_leg(facts, step, leg.id)}
    if kinds & {Evidence.AUTOLOG, Evidence.PREDICTIONS}:
        return ""
    return (
        f"; if the suite prints no AutoLog report, set predictions or prints: {{inference: false}} in "
        f"configs/suites/{facts.plan.suite}.yaml"
    )
