"""A step that misses a file because the download of an earlier preparation failed."""

from collections.abc import Iterable
from dataclasses import replace

from tipcflow.domain.run.failure import REMEDIES, FailureClass, Suspicion
from tipcflow.execute.failure.outcome import Outcome


def attributed_to_preparation(outcome: Outcome, suspicions: Iterable[Suspicion]) -> Outcome:
    """Return the outcome of a step that misses a file with the failed preparation as its cause.

    Any other failure, and a step that succeeds, are not changed: a script may have a second source.

    Args:
        suspicions: what the logs of the preparations that the step needs report.
    """
    failure = outcome.failure
    if failure is None or failure.failure_class is not FailureClass.DATA_MISSING:
        return outcome
    candidates = sorted(suspicions, key=lambda suspicion: suspicion.node != failure.node)
    if not candidates:
        return outcome
    suspicion = candidates[0]
    kind = suspicion.failure_class
    place = f"in {suspicion.step} on node {suspicion.node}"
    reason = f"{REMEDIES[kind].means} {place}: {suspicion.log_line}; therefore {outcome.reason}"
    known = failure.model_copy(
        update={"failure_class": kind, "cause": suspicion.step, "log_line": suspicion.log_line}
    )
    return replace(outcome, status=REMEDIES[kind].status, reason=reason, failure=known)


def reported(suspicions: Iterable[Suspicion]) -> str:
    """Return what the log of a preparation reports although it ended with 0; '' for nothing."""
    return "; ".join(
        f"exit code 0, but its log on node {suspicion.node} reports: {suspicion.log_line}"
        for suspicion in suspicions
    )
