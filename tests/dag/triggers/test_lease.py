"""What keeps a run's place in the queue while its task is deferred, with a real database."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent
from tests.support.stories import a_run

from tipcflow.execute.events import latest_events
from tipcflow.store import Store
from tipcflow_operators.triggers import lease as triggers
from tipcflow_operators.triggers.lease import LeaseTrigger

A0, B0 = ("192.0.2.1", 0), ("192.0.2.2", 0)
NAMES = {"192.0.2.1": "node-1", "192.0.2.2": "node-2"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "")
    monkeypatch.setattr(triggers, "SETTLE_S", 0.01)
    with Store.open() as made:
        for name, trigger in (("mine", "manual"), ("holder", "weekly"), ("change", "ci")):
            made.runs.create(a_run(name, trigger=trigger))
        yield made


def a_trigger(**fields: Any) -> LeaseTrigger:
    known: dict[str, Any] = {"run": "mine", "slots": [list(A0), list(B0)], "since": 5.0, "until": time.time() + 60}
    known |= {"owner": "airflow d r", "names": NAMES, "said": "", "looked": False}
    return LeaseTrigger(**(known | fields))


def fired(trigger: LeaseTrigger, meanwhile: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The trigger's event after a round trip through the database; `meanwhile` runs after its first query."""
    _, fields = trigger.serialize()
    again = LeaseTrigger(**fields)
    looks = 0
    held = again._held

    def counted() -> tuple[str, bool]:
        nonlocal looks
        looks += 1
        result = held()
        if looks == 2:
            meanwhile()
        return result

    again._held = counted  # type: ignore[method-assign]

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(again.run()), 60)

    payload = asyncio.run(first()).payload
    assert isinstance(payload, dict)
    return {**payload, "looks": looks, "said": again.said}


def hold(store: Store, run: str, ttl_s: float = 600, ago: float = 0) -> None:
    assert store.leases.acquire(run, [A0], owner="other", ttl_s=ttl_s, now=time.time() - ago)


def test_lease_trigger_keeps_the_queue_place_and_fires_in_turn(store: Store, tmp_path: Path) -> None:
    hold(store, "holder")
    report = fired(a_trigger(), lambda: store.leases.release("holder") and None)
    assert (report["since"], report["looks"]) == (5.0, 3)
    assert report["said"].startswith("waiting for node-1 slot 0: held by run holder (weekly) since 20")
    assert [event.text for event in latest_events(tmp_path, "mine", 4096)] == [report["said"]]
    (place,) = store.queue.places()
    assert (place.request.run, place.request.owner, place.free) == ("mine", "airflow d r", True)


def test_lease_trigger_fires_if_a_restored_database_lacks_the_run(store: Store) -> None:
    assert fired(a_trigger(run="later"), lambda: pytest.fail("the trigger waits"))["since"] == 5.0
    assert store.queue.places() == []


def test_lease_trigger_moves_to_a_free_node_and_fires(store: Store) -> None:
    hold(store, "holder")
    c0 = ("192.0.2.3", 0)
    groups = [[node for node, _ in (A0, B0, c0)]]
    report = fired(a_trigger(groups=groups))
    assert report["looks"] == 1
    (place,) = store.queue.places()
    assert (place.request.slots, place.free) == ((B0, c0), True)


def test_lease_trigger_waits_for_runs_ahead_in_the_queue(store: Store) -> None:
    store.queue.join("change", [B0], owner="ci", ttl_s=600)
    report = fired(a_trigger(), lambda: store.queue.leave("change") and None)
    assert (
        report["said"]
        == "waiting for node-2 slot 0: reserved for run change (ci), which is ahead in the queue; position 2 of 2"
    )


def test_nodes_of_expired_leases_are_inspected_at_intervals(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(store, "holder", ttl_s=60, ago=3600)
    assert fired(a_trigger())["looks"] == 1
    monkeypatch.setattr(triggers, "INSPECT_AGAIN_S", 3.0)  # a query of the database may take a second
    assert fired(a_trigger(looked=True))["looks"] > 1


def test_lease_trigger_has_a_deadline_and_retries_the_database(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(store, "holder")
    assert fired(a_trigger(until=time.time() + 0.3))["since"] == 5.0
    trigger = a_trigger()
    results: list[Any] = [RuntimeError("away"), ("", True)]

    def held() -> tuple[str, bool]:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result  # type: ignore[no-any-return]

    monkeypatch.setattr(trigger, "_held", held)

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(trigger.run()), 60)

    asyncio.run(first())
    assert results == []


def test_a_task_that_a_user_ends_stops_waiting(store: Store) -> None:
    store.queue.join("mine", [A0], owner="me", ttl_s=600)
    asyncio.run(a_trigger().on_kill())
    assert store.queue.places() == []


def test_a_run_whose_trigger_moves_to_another_triggerer_keeps_its_place(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def moved(_: object) -> bool:
        return False

    monkeypatch.setattr(triggers, "is_by_user", moved)
    store.queue.join("mine", [A0], owner="me", ttl_s=600)
    asyncio.run(a_trigger().on_kill())
    assert [place.request.run for place in store.queue.places()] == ["mine"]
