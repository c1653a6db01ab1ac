"""Whether a step may start: the statuses of the steps it needs."""

from collections.abc import Mapping

from tipcflow.domain import Status, Step


def why_not(step: Step, statuses: Mapping[str, Status]) -> tuple[Status, str] | None:
    """Return (status, reason) if a step cannot start; None if it can.

    Args:
        statuses: step id -> status of the steps that have ended.
    """
    if step.not_run:
        return Status.NOT_RUN, step.not_run
    if step.legs and all(leg.not_run for leg in step.legs):
        return Status.NOT_RUN, step.legs[0].not_run
    missing = [need for need in step.after if statuses.get(need) is not Status.PASS]
    if missing:
        said = ", ".join(f"{need} is {statuses.get(need, Status.BLOCKED).value}" for need in missing)
        return Status.BLOCKED, f"not started: {said}"
    return None
