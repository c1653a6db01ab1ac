"""What a quarantine covers, when it is in force, and how many clean runs end it."""

import math
from typing import Any

import pytest

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.quarantine.entry import Quarantine, clean_runs_needed

SLOW = CheckResult(
    check="speed.batch_cost",
    status=Status.REGRESSION,
    reason="0.11 s, 1.1 x",
    step="v/train",
    metric="batch_cost",
    values={"value": 0.11, "ratio": 1.1},
)


def quarantine(**fields: Any) -> Quarantine:
    known: dict[str, Any] = {
        "chain": "s/m/f",
        "mode": "lite",
        "environment": "cpu",
        "check": "speed.batch_cost",
        "step": "v/train",
        "metric": "batch_cost",
        "signature": "worse",
        "largest": math.log(1.1),
        "owner": "team",
        "who": "mia",
        "why": "noisy",
        "run": "r",
        "failed": 1,
        "judged": 10,
        "created_at": 100.0,
        "expires_at": 200.0,
    }
    return Quarantine(**(known | fields))


def changed(**fields: Any) -> CheckResult:
    return SLOW.model_copy(update=fields)


def test_quarantine_covers_the_same_failure() -> None:
    assert quarantine().covers(SLOW)
    assert quarantine().covers(changed(status=Status.UNCONFIRMED, reason="0.12 s; confirm run requested"))


def test_quarantine_of_an_earlier_version_covers_the_same_failure() -> None:
    stored = quarantine(signature="worse than earlier runs")
    assert (stored.signature, stored.covers(SLOW)) == ("worse", True)


def test_quarantine_covers_every_repeat_of_a_step() -> None:
    assert quarantine().covers(changed(step="v_repeat_2/train"))


@pytest.mark.parametrize(
    "other",
    [
        {"check": "speed.ips"},
        {"step": "w/train"},
        {"leg": "cpu"},
        {"metric": "ips"},
        {"status": Status.PASS},
        {"status": Status.INFRA_FAILURE},
        {"status": Status.FAILED},
        {"gating": False},
        {"values": {}},
        {"values": {"value": 0.2, "ratio": 2.0}},
        {"values": {"value": math.inf, "ratio": math.inf}},
    ],
)
def test_quarantine_does_not_cover_other_failures(other: dict[str, Any]) -> None:
    assert not quarantine().covers(changed(**other))


def test_a_failure_of_twice_the_size_is_covered() -> None:
    assert quarantine().covers(changed(values={"value": 0.12, "ratio": 1.2}))
    assert not quarantine().covers(changed(values={"value": 0.13, "ratio": 1.22}))
    assert quarantine(largest=None).covers(changed(values={"value": 9.0, "ratio": 90.0}))


@pytest.mark.parametrize(
    ("at", "released", "active"),
    [
        (99, None, False),
        (100, None, True),
        (199, None, True),
        (200, None, False),
        (150, 140, False),
        (150, 160, True),
    ],
)
def test_quarantine_is_active_until_expiry_or_release(at: float, released: float | None, active: bool) -> None:
    assert quarantine(released_at=released).is_active(at) is active


@pytest.mark.parametrize(
    ("failed", "judged", "runs"), [(1, 9, 29), (1, 1, 5), (10, 10, 2), (1, 99, 299), (5, 9, 5)]
)
def test_quarantine_ends_after_enough_clean_runs(failed: int, judged: int, runs: int) -> None:
    rate = failed / (judged + 1)
    assert clean_runs_needed(failed, judged) == runs
    assert (1 - rate) ** runs <= 0.05 < (1 - rate) ** (runs - 1)


def test_a_quarantine_is_printed_as_text() -> None:
    assert quarantine(expires_at=1_795_996_800.0).until == "2026-11-30 00:00 UTC"
    assert quarantine(leg="cpu").about == "speed.batch_cost (v/train cpu)"
