"""Queue priorities of runs that need the same slots."""

from enum import IntEnum

from tipcflow.domain.triggers import BISECT, CONFIRM

# First parts of Airflow's run IDs, and the triggers of CLI and webhook (`Run.trigger`).
_CHANGES = frozenset({"ci", "github", "pr", "pull_request", "webhook"})
_SCHEDULES = frozenset({"weekly", "scheduled", "backfill", "asset_triggered"})


class Priority(IntEnum):
    """Priority of a run; a smaller number is scheduled first."""

    # Another run waits for a confirm run, and its time counts in that run's budget.
    CONFIRM = -1
    PULL_REQUEST = 0
    PERSON = 1
    WEEKLY = 2
    # Nothing waits for the result of a bisection.
    BISECTION = 3


def priority_of(trigger: str) -> Priority:
    """The priority of a run by its trigger: pull requests, then users, then schedules, last bisections."""
    if trigger == CONFIRM:
        return Priority.CONFIRM
    if trigger == BISECT:
        return Priority.BISECTION
    if trigger in _CHANGES:
        return Priority.PULL_REQUEST
    return Priority.WEEKLY if trigger in _SCHEDULES else Priority.PERSON


def risen(priority: int, waited_s: float, rise_s: float) -> int:
    """The priority after waiting: one better for every `rise_s` seconds, never better than a pull request's.

    The oldest run of the highest priority goes first, so no run waits forever.
    """
    best = min(priority, int(Priority.PULL_REQUEST))
    return max(best, priority - int(max(0.0, waited_s) // rise_s))
