"""Typed access to the values of check results: stored ones of all versions are read, and keys keep their names."""

import json
from typing import Any

import pytest

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.numbers.measured import Measured, ValueKey

# As stored before the keys had a type.
BASELINE = {
    "value": 0.5,
    "unit": "s",
    "n": 7,
    "needed": 5,
    "baseline": 0.4,
    "last": 0.41,
    "ratio": 1.25,
    "limit": 0.1,
    "confirm": True,
    "size": 0.25,
    "confidence": 0.99,
    "since": 6,
    "rank": 3,
    "slowest": True,
}


def test_stored_baseline_comparison_is_read() -> None:
    measured = Measured(BASELINE)
    assert (measured.value, measured.unit, measured.baseline, measured.ratio, measured.limit) == (
        0.5,
        "s",
        0.4,
        1.25,
        0.1,
    )
    assert (measured.earlier_runs, measured.needs_confirm, measured.rank, measured.is_of_slowest) == (
        (7, 5),
        True,
        3,
        True,
    )
    assert (measured.size, measured.confidence, measured.since) == (0.25, 0.99, 6)


def test_stored_target_and_quarantine_are_read() -> None:
    target = Measured({"value": 75, "target": 76.1, "tolerance": 0.5, "unit": "%"})
    assert (target.value, target.target, target.tolerance, target.unit) == (75.0, 76.1, 0.5, "%")
    covered = Measured({"code": "no_fall", "quarantine": 4, "quarantine_signature": "no_fall"})
    assert (covered.code, covered.quarantine, covered.signature) == ("no_fall", 4, "no_fall")
    assert Measured({"summary": True}).is_summary
    assert Measured({"seen_from_outside": True}).is_seen_from_outside


@pytest.mark.parametrize(
    "wrong", [{}, {"value": "0.5", "unit": 3, "n": 1.5, "rank": "3", "code": 1}, {"value": True}]
)
def test_missing_value_or_wrong_type_gives_none(wrong: dict[str, Any]) -> None:
    measured = Measured(wrong)
    assert (measured.value, measured.unit, measured.earlier_runs, measured.rank, measured.code) == (
        None,
        "",
        None,
        None,
        "",
    )
    assert (measured.quarantine, measured.signature, measured.needs_confirm, measured.is_summary) == (
        None,
        None,
        False,
        False,
    )


def test_keys_are_stored_as_plain_text() -> None:
    result = CheckResult(check="c", status=Status.PASS, reason="", values={ValueKey.VALUE: 1.0, "more": [2]})
    assert {type(key) for key in result.values} == {str}
    changed = result.model_copy(update={"values": {**result.values, ValueKey.SIGNATURE: "no_fall"}})
    expected = {"value": 1.0, "more": [2], "quarantine_signature": "no_fall"}
    assert json.loads(changed.model_dump_json())["values"] == changed.model_dump(mode="json")["values"] == expected
    assert json.loads(json.dumps(changed.values)) == expected


def test_result_gives_typed_access_to_its_values() -> None:
    result = CheckResult(check="c", status=Status.PASS, reason="", values=BASELINE)
    assert result.measured == Measured(BASELINE)
    assert result.values == BASELINE
