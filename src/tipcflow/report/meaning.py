"""One sentence per run status (docs/reference/statuses.md)."""

from collections.abc import Mapping
from typing import Any

from tipcflow.domain import Run, Status

RUN_MEANS = {
    Status.PASS: "All executed steps and gating checks passed.",
    Status.IMPROVEMENT: "Better than the baseline by more than noise: review, then accept.",
    Status.CANCELLED: "Stopped by a user or a newer push.",
    Status.INFRA_FAILURE: "Failure of a node, network, disk, environment or login, not of the model.",
    Status.UNCONFIRMED: "A value is beyond its limit, and no confirm run confirmed or refuted it.",
    Status.REGRESSION: "Worse than the baseline by more than noise.",
    Status.FAILED: "The model or its code is broken.",
    Status.CONFIG_ERROR: "Invalid params, suite, cluster or trigger; nothing was started.",
}
NO_STATUS = "Running, or waiting for a confirm run."

# The run document with the verdict's line and its parts, so that the line is never parsed.
WHY = "why"

NEUTRAL = "Not failing by policy (unconfirmed: neutral)."

BEING_CONFIRMED = "All steps have ended; waiting for a confirm run."


def meaning(status: Status | None, *, neutral: bool = False) -> str:
    """The meaning of a run's status, with a note if the policy makes `unconfirmed` neutral."""
    said = NO_STATUS if status is None else RUN_MEANS.get(status, "")
    return f"{said} {NEUTRAL}" if neutral else said


def reasons(run: Run, kept: Mapping[str, Any] | None) -> list[str]:
    """The parts of the run's reason, in order.

    Args:
        kept: the run document with the verdict's `line` and `parts`; None if there is none.
    """
    if kept and kept.get("line") == run.reason:
        return [str(part) for part in kept.get("parts", ())]
    return [run.reason] if run.reason else []
