"""What a status word means for a person, as one sentence each (docs/reference/statuses.md)."""

from collections.abc import Mapping
from typing import Any

from tipcflow.domain import Run, Status

RUN_MEANS = {
    Status.PASS: "Everything that was run and judged is as it should be.",
    Status.IMPROVEMENT: "Better than the baseline by more than noise: look at it, then accept it.",
    Status.CANCELLED: "A person or a newer push stopped it.",
    Status.INFRA_FAILURE: "Nodes, network, disk, environment or login failed: not the model's fault.",
    Status.UNCONFIRMED: "A number is beyond its limit, and no confirm run could confirm or refute it.",
    Status.REGRESSION: "Worse than the baseline by more than noise.",
    Status.FAILED: "The model or its code is broken.",
    Status.CONFIG_ERROR: "Params, suite, cluster or trigger are wrong; nothing was started.",
}
NO_STATUS = "It goes on, or a check of it is being confirmed."

# The document of a run with its verdict's line and the parts that it was joined from: nobody takes the line apart.
WHY = "why"

NEUTRAL = "The policy says that this does not block (unconfirmed: neutral)."

BEING_CONFIRMED = "Its steps have ended; a check of it is being confirmed."


def meaning(status: Status | None, *, neutral: bool = False) -> str:
    """What a run's status means, and whether a doubt does not block."""
    said = NO_STATUS if status is None else RUN_MEANS.get(status, "")
    return f"{said} {NEUTRAL}" if neutral else said


def reasons(run: Run, kept: Mapping[str, Any] | None) -> list[str]:
    """The run's reason as the parts that it was joined from, in their order.

    Args:
        kept: the run's document of its verdict's `line` and `parts`; None when there is none.
    """
    if kept and kept.get("line") == run.reason:
        return [str(part) for part in kept.get("parts", ())]
    return [run.reason] if run.reason else []
