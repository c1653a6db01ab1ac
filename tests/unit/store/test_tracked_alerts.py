"""Alerts in the database: one per first run, a run counts once, changes keep each other's fields."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.stories import T0, a_run, open_store
from tests.unit.domain.alert.test_entry import alert, moved

from tipcflow.domain import ConfigError
from tipcflow.domain.alert.entry import Alert, AlertEvent, AlertState, EventKind
from tipcflow.store import Store

RUNS = 6


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as opened:
        for number in range(RUNS):
            opened.runs.create(a_run(f"r{number}", created_at=T0 + number))
        yield opened


def draft(run: str = "r1", **fields: object) -> Alert:
    return alert(moved("ips", 0.8), first=run, newest=run, first_at=T0, newest_at=T0, **fields)


def test_stored_alert_is_read_back(store: Store) -> None:
    made = store.tracked_alerts.open(draft(suspects=("framework 1 -> 2",), last_good="r0"), "slow", at=T0)
    assert made == draft(suspects=("framework 1 -> 2",), last_good="r0").model_copy(
        update={"number": 1, "group": 1}
    )
    assert store.tracked_alerts.get(1) == made
    assert store.tracked_alerts.of_line("s/a/train", "lite", "cpu") == [made]
    assert store.tracked_alerts.of_line("s/a/train", "lite", "gpu") == []
    assert store.tracked_alerts.all(since=T0) == store.tracked_alerts.present(T0) == [made]
    assert store.tracked_alerts.all(since=T0 + 1) == store.tracked_alerts.all(states=[AlertState.FIXED]) == []


def test_a_run_opens_one_alert(store: Store) -> None:
    made = [store.tracked_alerts.open(draft(), "slow", at=T0) for _ in range(2)]
    assert made[0] == made[1]
    assert len(store.tracked_alerts.events(1)) == 1


def test_runs_that_end_at_once_get_different_numbers(store: Store) -> None:
    with ThreadPoolExecutor(RUNS) as pool:
        made = pool.map(lambda number: store.tracked_alerts.open(draft(f"r{number}"), "slow", at=T0), range(RUNS))
        assert sorted(each.number for each in made) == list(range(1, RUNS + 1))


def test_a_change_touches_only_its_fields(store: Store) -> None:
    store.tracked_alerts.open(draft(), "slow", at=T0)
    owner = AlertEvent(alert=1, at=T0, who="mia", kind=EventKind.OWNER, text="mia")
    store.tracked_alerts.change(owner, owner="mia")
    seen = AlertEvent(alert=1, at=T0, who="tipcflow", kind=EventKind.SEEN, run="r2")
    for _ in range(2):
        changed = store.tracked_alerts.change(seen, runs=2, newest="r2", metrics=(moved("ips", 0.7),))
    assert (changed.owner, changed.runs, changed.newest, changed.metrics[0].ratio) == ("mia", 2, "r2", 0.7)
    assert [(event.ordinal, event.kind) for event in store.tracked_alerts.events(1)] == [
        (1, EventKind.OPENED),
        (2, EventKind.OWNER),
        (3, EventKind.SEEN),
    ]
    assert [each.number for each in store.tracked_alerts.of_run("r2")] == [1]


def test_unknown_alert_number_is_refused(store: Store) -> None:
    with pytest.raises(
        ConfigError, match=r"no such alert; found '7'; expected the number of an alert; the database has none"
    ):
        store.tracked_alerts.get(7)
    store.tracked_alerts.open(draft(), "slow", at=T0)
    with pytest.raises(ConfigError, match="expected 1 to 1"):
        store.tracked_alerts.get(7)
