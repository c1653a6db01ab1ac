"""One sentence per run status (docs/reference/statuses.md)."""

from tipcflow.domain import Run, Status
from tipcflow.domain.run_documents import JudgementDocument

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

NEUTRAL = "Not failing by policy (unconfirmed: neutral)."

BEING_CONFIRMED = "All steps have ended; waiting for a confirm run."


def meaning(status: Status | None, *, neutral: bool = False) -> str:
    """The meaning of a run's status, with a note if the policy makes `unconfirmed` neutral."""
    sentence = NO_STATUS if status is None else RUN_MEANS.get(status, "")
    return f"{sentence} {NEUTRAL}" if neutral else sentence


def reasons(run: Run, judged: JudgementDocument | None) -> list[str]:
    """The parts of the run's reason, in order.

    Args:
        judged: None if the run has none.
    """
    if run.status is not None and judged and judged.parts:
        return list(judged.parts)
    return [run.reason] if run.reason else []
