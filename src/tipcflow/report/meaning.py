"""What a status word means for a person, as one sentence each (docs/reference/statuses.md)."""

from tipcflow.domain import Run, Status

RUN_MEANS = {
    Status.PASS: "Everything that was asked ended as it should.",
    Status.IMPROVEMENT: "Better than the baseline by more than noise: look at it, then accept it.",
    Status.CANCELLED: "A person or a newer push stopped it.",
    Status.INFRA_FAILURE: "Nodes, network, disk, environment or login failed: not the model's fault.",
    Status.UNCONFIRMED: "A number is beyond its limit, and no confirm run could confirm or refute it.",
    Status.REGRESSION: "Worse than the baseline by more than noise.",
    Status.FAILED: "The model or its code is broken.",
    Status.CONFIG_ERROR: "Params, suite, cluster or trigger are wrong; nothing was started.",
}
NO_STATUS = "It goes on, or a check of it is being confirmed."

BEING_CONFIRMED = "Its steps have ended; a check of it is being confirmed."


def meaning(status: Status | None) -> str:
    """One sentence about a run's status."""
    return NO_STATUS if status is None else RUN_MEANS.get(status, "")


def reasons(run: Run) -> list[str]:
    """The run's reason as the sentences that it was joined from, in their order."""
    return [part for part in (piece.strip() for piece in run.reason.split("; ")) if part]
