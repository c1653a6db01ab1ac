"""Quarantines: each failure once, few new ones a day, and rows that stay when they end."""

from typing import Any

import pytest
from tests.support.stories import T0, a_run

from tipcflow.domain import ConfigError
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.store import Store

DAY = 86_400.0


def quarantine(**fields: Any) -> Quarantine:
    known: dict[str, Any] = {
        "chain": a_run().chain,
        "mode": a_run().mode,
        "environment": "cpu",
        "check": "parity.onednn",
        "step": "v/infer_cpu",
        "leg": "cpu_bs1",
        "signature": "other_class",
        "largest": 0.25,
        "owner": "inference team",
        "who": "mia",
        "why": "known kernel bug",
        "run": a_run().id,
        "evidence": (a_run().id,),
        "failed": 1,
        "judged": 9,
        "created_at": T0,
        "expires_at": T0 + 14 * DAY,
    }
    return Quarantine(**(known | fields))


@pytest.fixture
def filled(store: Store) -> Store:
    store.runs.create(a_run())
    return store


def test_stored_quarantine_is_read_back(filled: Store) -> None:
    made = filled.quarantines.add(quarantine(), per_day=3)
    assert made == quarantine(number=1)
    assert filled.quarantines.get(1) == made
    assert filled.quarantines.all() == filled.quarantines.of_line(made.chain, made.mode, "cpu") == [made]
    assert filled.quarantines.all(chain="other") == filled.quarantines.of_line(made.chain, made.mode, "gpu") == []


def test_a_failure_is_quarantined_once(filled: Store) -> None:
    filled.quarantines.add(quarantine(), per_day=3)
    with pytest.raises(ConfigError, match=r"found 'quarantine 1 of inference team, until .* UTC'"):
        filled.quarantines.add(quarantine(created_at=T0 + 1, owner="me"), per_day=3)
    assert filled.quarantines.add(quarantine(created_at=T0 + 1, signature="another"), per_day=3).number == 2
    assert len(filled.quarantines.all()) == 2


@pytest.mark.parametrize("end", ["expired", "released"])
def test_a_failure_may_be_quarantined_again_after_its_end(filled: Store, end: str) -> None:
    filled.quarantines.add(quarantine(), per_day=3)
    at = T0 + 15 * DAY
    if end == "released":
        at = T0 + 2 * DAY
        assert filled.quarantines.release(1, at=at - 1, who="tom", why="fixed")
    again = filled.quarantines.add(quarantine(created_at=at, expires_at=at + DAY), per_day=3)
    assert [each.number for each in filled.quarantines.all()] == [2, 1]
    assert again.is_active(at)
    assert not filled.quarantines.get(1).is_active(at)


def test_new_ones_a_day_are_limited(filled: Store) -> None:
    for number in range(2):
        filled.quarantines.add(quarantine(signature=f"s{number}", created_at=T0 + number), per_day=2)
    with pytest.raises(ConfigError, match="found '2 within 24 hours'; expected at most 2 a day"):
        filled.quarantines.add(quarantine(signature="s2", created_at=T0 + 2), per_day=2)
    with pytest.raises(ConfigError, match="at most 0 a day"):
        filled.quarantines.add(quarantine(signature="s2", created_at=T0 + 2 * DAY), per_day=0)
    assert filled.quarantines.add(quarantine(signature="s2", created_at=T0 + DAY), per_day=2).number == 3


def test_a_release_is_kept_with_author_and_reason(filled: Store) -> None:
    filled.quarantines.add(quarantine(), per_day=3)
    assert filled.quarantines.release(1, at=T0 + 5, who="tom", why="fixed")
    assert not filled.quarantines.release(1, at=T0 + 6, who="eve", why="again"), "the first one counts"
    ended = filled.quarantines.get(1)
    assert (ended.released_at, ended.released_by, ended.released_because) == (T0 + 5, "tom", "fixed")


def test_an_expired_one_is_not_released(filled: Store) -> None:
    filled.quarantines.add(quarantine(), per_day=3)
    assert not filled.quarantines.release(1, at=T0 + 14 * DAY, who="tom", why="late")
    assert filled.quarantines.get(1).released_at is None


def test_unknown_quarantine_number_is_refused(store: Store) -> None:
    with pytest.raises(ConfigError, match=r"no such quarantine.*found '7'"):
        store.quarantines.get(7)
