"""Signatures: equal failures agree in them, others do not; what may never be quarantined."""

import math
from typing import Any

import pytest

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.quarantine.signature import may_be_quarantined, refusal, signature_of, size_of


def result(check: str = "parity.onednn", reason: str = "", **fields: Any) -> CheckResult:
    known: dict[str, Any] = {"status": Status.FAILED, "values": {"max_abs": 0.25, "value": 1.0, "last": 1.0}}
    return CheckResult(check=check, reason=reason, **(known | fields))


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        ("class 3 instead of 5 (image a/b.png)", "class 4 instead of 9 (image c.jpg)"),
        ("differs by 1e-05", "differs by 2.5"),
        ("differs by 0.12000000000000001", "differs by 3"),
        ("against run 20261121t093005-mobilenet-0a1b", "against run 20261124t000000-mobilenet_v3-ffff"),
        ("commit 3f2c1e0a", "commit 0123456789abcdef"),
        ("commit 3f2c1e0a", "commit 01234567"),
    ],
)
def test_numbers_files_and_runs_are_not_part_of_it(reason: str, other: str) -> None:
    assert signature_of(result(reason=reason)) == signature_of(result(reason=other))


def test_the_words_are() -> None:
    assert signature_of(result(reason="score differs by 2")) != signature_of(result(reason="class differs by 2"))
    assert signature_of(result(reason="leg cpu_threads1_bs1")) != signature_of(
        result(reason="leg cpu_threads1_bs4")
    )
    assert signature_of(result(reason="score is nan")) != signature_of(result(reason="score is 2"))


def test_how_a_change_was_confirmed_is_not_part_of_it() -> None:
    suspected = result("speed.ips", "90, not confirmed: too late", status=Status.UNCONFIRMED)
    confirmed = result("speed.ips", "90, and the confirm run measured 91", status=Status.REGRESSION)
    assert signature_of(suspected) == signature_of(confirmed) == "worse than earlier runs"


def test_an_applied_quarantine_keeps_it() -> None:
    known = result(reason="quarantined: x", values={"max_abs": 1.0, "quarantine_signature": "score differs"})
    assert signature_of(known) == "score differs"


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ({"ratio": 2.0}, math.log(2)),
        ({"ratio": 0.5}, math.log(2)),
        ({"ratio": 0.0}, math.inf),
        ({"pinned": 2.0, "value": 1.0}, math.log(2)),
        ({"max_abs": 0.25}, 0.25),
        ({"target": 70, "value": 68.5}, 1.5),
        ({"worst": 70.0, "value": 60.0}, 10.0),
        ({"value": 1.0, "flag": True}, None),
    ],
)
def test_sizes(values: dict[str, Any], size: float | None) -> None:
    assert size_of(result(values=values)) == (size if size is None else pytest.approx(size))


@pytest.mark.parametrize(
    "check",
    [
        "ran.steps",
        "ran.evidence",
        "ran.weights",
        "ran.world_size",
        "ran.removed",
        "ran.log",
        "environment.class",
        "confirm.run",
        "node_health",
        "loss.finite",
        "a.new.check",
    ],
)
def test_what_proves_that_work_was_done_is_never_quarantined(check: str) -> None:
    assert not may_be_quarantined(check)
    assert "declared work" in refusal(result(check))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"status": Status.PASS}, "the result is pass"),
        ({"status": Status.INFRA_FAILURE}, "the result is infra_failure"),
        ({"gating": False}, "does not affect"),
        ({"values": {"target": 70.0}}, "did not measure"),
        ({"values": {"max_abs": math.nan}}, "not finite"),
    ],
)
def test_missing_evidence_is_never_quarantined(fields: dict[str, Any], why: str) -> None:
    said = refusal(result(**fields))
    assert (said == "") if not why else (why in said)
