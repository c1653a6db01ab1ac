"""Whether a step may start: its own settings, the steps that it needs, and a stop by a user."""

from collections.abc import Mapping

from tipcflow.domain import Status, Step


def blocking_status(step: Step, statuses: Mapping[str, Status]) -> tuple[Status, str] | None:
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
        reasons = ", ".join(f"{need} is {statuses.get(need, Status.BLOCKED).value}" for need in missing)
        return Status.BLOCKED, f"not started: {reasons}"
    return None


def refusal(step: Step, statuses: Mapping[str, Status], *, stopped: bool) -> tuple[Status, str] | None:
    """Return (status, reason) of a step that is not started; None if it may start.

    Args:
        statuses: step id -> status of the steps that have ended.
        stopped: whether a user stopped the run.
    """
    missing = blocking_status(step, statuses)
    if not stopped or (missing is not None and missing[0] is Status.NOT_RUN):
        return missing
    needs = [statuses.get(need, Status.CANCELLED) for need in step.after]
    if any(status not in (Status.PASS, Status.CANCELLED) for status in needs):
        return missing  # it would not have started without the stop either
    return Status.CANCELLED, "not started: stopped by a user"
