"""Did the confirm run fail?"""

from tipcflow.check.context import CheckContext
from tipcflow.domain import CheckResult, Facts, Status

NAME = "confirm.run"


def confirm_run(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One `failed` result when the confirm run failed: the same code was seen failing, however this run ended.

    A confirm run that was late, cancelled or lost is not a finding: it leaves the suspected metrics `unconfirmed`.
    """
    confirmation = context.confirmation
    if confirmation is None or not confirmation.failed:
        return []
    reason = f"confirm run {confirmation.run} of the same code failed: {confirmation.failed}"
    return [CheckResult(check=NAME, status=Status.FAILED, reason=reason, values={"run": confirmation.run})]
