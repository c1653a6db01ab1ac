"""Signatures: equal failures agree in them, others do not; what may never be quarantined."""

import math
from typing import Any

import pytest

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.quarantine.signature import ReasonCode, may_be_quarantined, refusal, signature_of, size_of


def result(check: str = "parity.onednn", reason: str = "", **fields: Any) -> CheckResult:
    known: dict[str, Any] = {
        "status": Status.FAILED,
        "values": {"max_abs": 0.25, "value": 1.0, "last": 1.0, "code": "x"},
    }
    return CheckResult(check=check, reason=reason, **(known | fields))


def coded(check: str = "parity.onednn", **values: Any) -> str:
    return signature_of(result(check, values={"max_abs": 0.25, "code": ReasonCode.OTHER_CLASS} | values))


def test_signature_is_the_reason_code_with_parameters() -> None:
    assert coded() == "other_class"
    assert coded(compared_with="cpu_bs1") == "other_class compared_with=cpu_bs1"
    assert coded(compared_with="cpu_bs1") != coded(compared_with="cpu_bs4")
    assert coded("golden.results", golden_leg="cpu_bs1", rtol=0.1) == "other_class golden_leg=cpu_bs1"
    assert coded() != coded(code=ReasonCode.OTHER_SCORES)


def test_signature_excludes_sentence_numbers_and_runs() -> None:
    losses = {"first_divergent": 3, "code": "other_losses"}
    one = result("loss.reproducible", "from iteration 3 on", values=losses | {"compared_with": "run a"})
    other = result("loss.reproducible", "elsewhere", values=losses | {"first_divergent": 7, "compared_with": "b"})
    assert signature_of(one) == signature_of(other) == "other_losses"


def test_a_code_survives_the_database_as_text() -> None:
    stored = CheckResult.model_validate_json(
        result(values={"code": ReasonCode.NO_FALL, "last": 1.0}).model_dump_json()
    )
    assert signature_of(stored) == "no_fall"


def test_signature_excludes_how_a_change_was_confirmed() -> None:
    suspected = result("speed.ips", "90, not confirmed: too late", status=Status.UNCONFIRMED)
    confirmed = result("speed.ips", "90, and the confirm run measured 91", status=Status.REGRESSION)
    assert signature_of(suspected) == signature_of(confirmed) == "worse"


def test_applied_quarantine_keeps_the_signature() -> None:
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
def test_size_of_a_result_is_its_deviation(values: dict[str, Any], size: float | None) -> None:
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
def test_proofs_of_work_cannot_be_quarantined(check: str) -> None:
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
        ({"values": {"max_abs": 0.25}}, "no reason code"),
    ],
)
def test_missing_evidence_is_never_quarantined(fields: dict[str, Any], why: str) -> None:
    output = refusal(result(**fields))
    assert (output == "") if not why else (why in output)
