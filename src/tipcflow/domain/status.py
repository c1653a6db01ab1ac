"""Statuses of legs, steps, checks and runs (docs/reference/statuses.md)."""

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Status of a leg, step, check or run, in order of severity."""

    PASS = "pass"  # noqa: S105
    IMPROVEMENT = "improvement"
    INSUFFICIENT_DATA = "insufficient_data"
    NOT_RUN = "not_run"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    INFRA_FAILURE = "infra_failure"
    UNCONFIRMED = "unconfirmed"
    REGRESSION = "regression"
    FAILED = "failed"
    CONFIG_ERROR = "config_error"

    @property
    def severity(self) -> int:
        """Severity; a larger number is worse."""
        return _ORDER[self]


_ORDER = {status: position for position, status in enumerate(Status)}

_EXIT_CODES = {
    Status.PASS: 0,
    Status.IMPROVEMENT: 0,
    Status.INSUFFICIENT_DATA: 0,
    Status.NOT_RUN: 0,
    Status.CANCELLED: 3,
    Status.INFRA_FAILURE: 5,
    Status.UNCONFIRMED: 4,
    Status.REGRESSION: 1,
    Status.FAILED: 1,
    Status.CONFIG_ERROR: 2,
}

# Statuses of runs; the others are shown as counts.
_RUN_STATUSES = frozenset(
    {
        Status.PASS,
        Status.IMPROVEMENT,
        Status.CANCELLED,
        Status.INFRA_FAILURE,
        Status.UNCONFIRMED,
        Status.REGRESSION,
        Status.FAILED,
        Status.CONFIG_ERROR,
    }
)


def exit_code(status: Status, *, neutral: bool = False) -> int:
    """The CLI's exit code for a status.

    Args:
        neutral: policy `unconfirmed: neutral`; 0 for `unconfirmed`, no effect on other statuses.

    Raises:
        KeyError: for `blocked`, which is never the status of a run.
    """
    return 0 if neutral and status is Status.UNCONFIRMED else _EXIT_CODES[status]


def run_status(statuses: Iterable[Status], *, executed_steps: int, trained: bool, trains: bool) -> Status:
    """The worst status of the steps, legs and gating checks that can apply to a run.

    Args:
        statuses: of all steps, legs and gating checks of the run.
        executed_steps: number of planned steps that were executed.
        trained: whether a training step succeeded.
        trains: whether the run's mode trains.

    A run stopped by a user is `cancelled`, not `unconfirmed`, because no confirm run can follow.
    A run that executed no planned step, or did not train in a training mode, never passes: it is `failed`, unless
    another status (`infra_failure`, `cancelled`, …) already explains it.
    """
    candidates = _RUN_STATUSES.intersection(statuses)
    if Status.CANCELLED in candidates:
        candidates -= {Status.UNCONFIRMED}
    worst = max(candidates, key=lambda status: status.severity, default=Status.PASS)
    unproven = executed_steps == 0 or (trains and not trained)
    if unproven and worst.severity <= Status.IMPROVEMENT.severity:
        return Status.FAILED
    return worst
