"""Whether a step may start: its own settings, the steps that it needs, and a stop by a user."""

from collections.abc import Iterator, Mapping, Sequence

from tipcflow.domain import Status, Step

# What a status means of a step that others wait for.
_ENDED = {
    Status.FAILED: "failed",
    Status.INFRA_FAILURE: "had an infra_failure",
    Status.CANCELLED: "was cancelled",
    Status.NOT_RUN: "was not run",
}


def blocking_status(
    step: Step, statuses: Mapping[str, Status], steps: Sequence[Step] = ()
) -> tuple[Status, str] | None:
    """Return (status, reason) if a step cannot start, with the steps that failed first; None if it can start.

    Args:
        statuses: step id -> status of the steps that have ended.
        steps: all steps of the plan; without them, only the steps that this one needs are named.
    """
    if step.not_run:
        return Status.NOT_RUN, step.not_run
    if step.legs and all(leg.not_run for leg in step.legs):
        return Status.NOT_RUN, step.legs[0].not_run
    by_id = {other.id: other for other in steps}
    causes = [
        f"{root} {_ENDED.get(statuses.get(root, Status.BLOCKED), 'did not run')}"
        for root in dict.fromkeys(_roots(step, statuses, by_id))
    ]
    return (Status.BLOCKED, f"not started: {', '.join(causes)}") if causes else None


def _roots(step: Step, statuses: Mapping[str, Status], steps: Mapping[str, Step]) -> Iterator[str]:
    """Yield the steps because of which a step cannot start: those that were not themselves stopped by another."""
    for need in step.after:
        status = statuses.get(need)
        if status is Status.PASS:
            continue
        before = list(_roots(steps[need], statuses, steps)) if need in steps else []
        yield from before if before and status in (None, Status.BLOCKED) else [need]


def refusal(
    step: Step, statuses: Mapping[str, Status], steps: Sequence[Step] = (), *, stopped: bool
) -> tuple[Status, str] | None:
    """Return (status, reason) of a step that is not started; None if it may start.

    Args:
        statuses: step id -> status of the steps that have ended.
        steps: all steps of the plan, for the reason.
        stopped: whether a user stopped the run.
    """
    missing = blocking_status(step, statuses, steps)
    if not stopped or (missing is not None and missing[0] is Status.NOT_RUN):
        return missing
    needs = [statuses.get(need, Status.CANCELLED) for need in step.after]
    if any(status not in (Status.PASS, Status.CANCELLED) for status in needs):
        return missing  # it would not have started without the stop either
    return Status.CANCELLED, "not started: stopped by a user"
