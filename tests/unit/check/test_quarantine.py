"""Quarantined failures: they stay visible and do not block; nothing else is let through."""

import math
from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.quarantine import quarantined
from tipcflow.domain import CheckResult, Facts, LegKey, Status
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.quarantine.signature import signature_of, size_of
from tipcflow.report import certificate, junit, markdown, verify

END = "quarantine 7 of kernels, until 2026-12-01 00:00 UTC"


def other_class(build: ModuleType) -> Facts:
    """oneDNN predicts another class for one image."""
    scores = build.predictions()
    key = next(name for name in scores if str(name).endswith(build.ON))
    image = next(iter(scores[key]))
    first, *rest = scores[key][image]
    scores[key] = {**scores[key], image: (*rest, first)}
    return build.facts(predictions=scores)


def the_failure(facts: Facts, check: str) -> CheckResult:
    return next(result for result in judge(facts, CheckContext()) if result.check == check)


def quarantine(result: CheckResult, **fields: Any) -> Quarantine:
    known: dict[str, Any] = {
        "number": 7,
        "chain": "s/m/f",
        "mode": "lite",
        "environment": "cpu",
        "check": result.check,
        "step": result.step,
        "leg": result.leg,
        "metric": result.metric,
        "signature": signature_of(result),
        "largest": size_of(result),
        "owner": "kernels",
        "who": "mia",
        "why": "known bug",
        "run": "r",
        "failed": 1,
        "judged": 9,
        "created_at": 0.0,
        "expires_at": 1_796_083_200.0,
    }
    return Quarantine(**(known | fields))


@pytest.fixture
def facts(build: ModuleType) -> Facts:
    return other_class(build)


def judged(facts: Facts, *quarantines: Quarantine) -> tuple[Status, str, tuple[CheckResult, ...]]:
    results = judge(facts, CheckContext(quarantines=quarantines))
    return *verdict(facts, results), results


def test_a_covered_failure_does_not_block_and_is_named_first(facts: Facts, build: ModuleType) -> None:
    red, _, _ = judged(facts)
    assert red is Status.FAILED
    failure = the_failure(facts, "parity.onednn")
    status, reason, results = judged(facts, quarantine(failure))
    assert status is Status.PASS
    assert reason.startswith(f"quarantined: parity.onednn (v/infer_cpu {build.ON}): {END}: {failure.reason}; ")
    passed = sum(result.status is Status.PASS for result in results)
    assert f"; {passed} checks passed; " in reason, "the red one is not among them"
    shown = next(result for result in results if result.check == "parity.onednn")
    assert (shown.status, shown.gating, shown.values["quarantine"]) == (Status.FAILED, False, 7)
    assert quarantined(results) == (7,)


def test_certificate_and_reports_show_the_quarantine(facts: Facts, build: ModuleType) -> None:
    status, reason, results = judged(facts, quarantine(the_failure(facts, "parity.onednn")))
    run = build.run(status=status, reason=reason)
    made = certificate(facts, run, results)
    assert verify(made) == []
    check = next(entry for entry in made["checks"] if entry["check"] == "parity.onednn")
    assert (check["status"], check["gating"], check["values"]["quarantine"]) == ("failed", False, 7)
    assert made["verdict"]["reason"].startswith("quarantined: parity.onednn")
    assert "quarantined: parity.onednn" in markdown(facts, run, results)
    text = junit(facts, run, results)
    assert f'<skipped message="quarantined: failed: {END}: ' in text
    assert 'name="verdict" tests="1" failures="0" errors="0" skipped="0"' in text


@pytest.mark.parametrize(
    "fields",
    [
        {"check": "parity.chain"},
        {"leg": "other"},
        {"step": "w/infer_cpu"},
        {"signature": "other"},
        {"largest": 1e-9},
    ],
)
def test_another_failure_blocks(facts: Facts, fields: dict[str, Any]) -> None:
    status, reason, results = judged(facts, quarantine(the_failure(facts, "parity.onednn"), **fields))
    assert status is Status.FAILED
    assert "quarantine" not in reason
    assert quarantined(results) == ()


def test_blocking_problem_precedes_quarantined_checks_in_the_reason(facts: Facts, build: ModuleType) -> None:
    broken = facts.model_copy(
        update={
            "step_status": {**facts.step_status, build.EVAL: Status.FAILED},
            "step_reason": {LegKey(build.EVAL): "ended with 1"},
        }
    )
    status, reason, _ = judged(broken, quarantine(the_failure(facts, "parity.onednn")))
    assert status is Status.FAILED
    assert reason.startswith("v/eval: ended with 1")
    assert "; quarantined: parity.onednn" in reason


@pytest.mark.parametrize("check", ["loss.finite", "ran.steps", "ran.evidence"])
def test_quarantine_never_covers_missing_work_or_nan(build: ModuleType, check: str) -> None:
    """A row that no command would store does not open the gate."""
    broken = {
        "loss.finite": build.facts(
            measurements=tuple(
                sample.model_copy(update={"value": math.nan}) if sample.metric == "loss" else sample
                for sample in build.measurements()
            )
        ),
        "ran.steps": build.facts(measurements=(), records=()),
        "ran.evidence": build.facts(
            measurements=tuple(sample for sample in build.measurements() if sample.metric == "batch_cost")
        ),
    }[check]
    reds = [result for result in judge(broken, CheckContext()) if result.status is Status.FAILED]
    assert check in {result.check for result in reds}
    status, _, results = judged(broken, *(quarantine(result, largest=None) for result in reds))
    assert status is Status.FAILED
    assert quarantined(results) == ()
