"""Failures that come and go: which are proposed for a quarantine, with which rate and command."""

from typing import Any

from tests.support.stories import T0, a_run

from tipcflow.domain import CheckResult, Run, Status
from tipcflow.report.overview.proposals import proposals_of


def run(number: int, status: Status = Status.FAILED, **fields: Any) -> Run:
    known = {"chain": "s/a/f", "environment": "cpu", "created_at": T0 + number, "ended_at": T0 + number + 1}
    return a_run(f"run-{number}", status=status, **(known | fields))


def failure(**fields: Any) -> CheckResult:
    known: dict[str, Any] = {"check": "parity.onednn", "status": Status.FAILED, "reason": "class 3 instead of 5"}
    return CheckResult(
        **(known | {"step": "v/infer", "leg": "cpu", "values": {"max_abs": 0.5, "code": "other_class"}} | fields)
    )


def test_a_failure_that_was_seen_twice() -> None:
    runs = [run(number, Status.PASS if number > 1 else Status.FAILED) for number in range(10)]
    reds = [(runs[0], [failure()]), (runs[1], [failure(reason="class 9 instead of 1"), failure(leg="gpu")])]
    (proposal,) = proposals_of(reds, runs)
    assert (proposal.failed.hits, proposal.failed.runs, proposal.failed.rate) == (2, 10, 0.2)
    assert proposal.failed.low < 0.2 < proposal.failed.high
    assert (proposal.signature, proposal.run) == ("other_class", "run-1")
    assert proposal.command == (
        "tipcflow quarantine add s/a/f parity.onednn --run run-1 --step v/infer --leg cpu "
        '--owner TEAM --because "…"'
    )


def test_single_and_different_failures_are_not_proposed() -> None:
    """One failure, two different failures, and failures that may never be quarantined."""
    runs = [run(0), run(1), run(2, environment="gpu")]
    missing = CheckResult(check="ran.steps", status=Status.FAILED, reason="nothing ran")
    reds = [
        (runs[0], [failure(), missing]),
        (
            runs[1],
            [failure(values={"max_abs": 0.5, "code": "other_scores"}), missing, failure(gating=False, leg="gpu")],
        ),
        (runs[2], [failure(), missing]),
    ]
    assert proposals_of(reds, runs) == ()


def test_repeats_of_a_run_count_once() -> None:
    runs = [run(0), run(1, Status.PASS)]
    assert proposals_of([(runs[0], [failure(), failure(step="v_repeat_2/infer")])], runs) == ()
