"""Outbox rows are added once, taken by one process at a time, and never lost; schema 0008, up and down."""

import threading

import pytest
from sqlalchemy import inspect
from tests.support.stories import record_run

from tipcflow.domain import ConfigError
from tipcflow.store import Store, migrate
from tipcflow.store.engine import make_engine, reading
from tipcflow.store.outbox import Outbox


def add(store: Store, number: int, *, body: str = "") -> bool:
    return store.outbox.add(
        delivery=f"delivery-{number:03}",
        body_sha256=body or f"{number:064x}",
        connection="app",
        repository="owner/name",
        event="push",
        body={"number": number},
    )


def test_a_delivery_is_added_once(store: Store) -> None:
    assert add(store, 1)
    assert not add(store, 1, body="other")
    assert not add(store, 2, body=f"{1:064x}")
    assert [row.delivery for row in store.outbox.rows()] == ["delivery-001"]
    assert store.outbox.waiting() == 1


def test_rows_are_taken_oldest_first_and_done_once(store: Store) -> None:
    for number in (3, 1, 2):
        add(store, number)
    taken = store.outbox.take("me", limit=2)
    assert [row.delivery for row in taken] == ["delivery-003", "delivery-001"]
    assert [row.takes for row in taken] == [1, 1]
    assert taken[0].body == {"number": 3}
    assert [row.delivery for row in store.outbox.take("other")] == ["delivery-002"]
    assert store.outbox.done("delivery-003", "started run-1")
    assert not store.outbox.done("delivery-003", "started run-2")
    assert {row.outcome for row in store.outbox.rows()} == {"started run-1", ""}
    assert store.outbox.waiting() == 2


def test_a_row_whose_holder_died_is_taken_again(store: Store) -> None:
    add(store, 1)
    assert store.outbox.take("me", hold_s=0.0)
    (again,) = store.outbox.take("other")
    assert again.takes == 2
    store.outbox.leave(again.delivery, "GitHub does not respond", wait_s=60)
    assert store.outbox.take("third") == []
    store.outbox.leave(again.delivery, "GitHub does not respond", wait_s=0)
    assert store.outbox.take("third")[0].outcome == "GitHub does not respond"


def test_concurrent_processes_take_each_row_once(database_url: str) -> None:
    with Store.open(database_url, migrate=False) as store:
        for number in range(40):
            add(store, number)
    taken: list[str] = []

    def work(name: str) -> None:
        with Store.open(database_url, migrate=False) as mine:
            while rows := mine.outbox.take(name, limit=3):
                taken.extend(row.delivery for row in rows)

    threads = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [f"delivery-{number:03}" for number in range(40)]


def test_old_rows_lose_their_body_first(store: Store) -> None:
    for number in (1, 2):
        add(store, number)
    store.outbox.done("delivery-001", "done")
    assert store.outbox.shorten(bodies_days=-1) == 0
    bodies = {row.delivery: row.body for row in store.outbox.rows()}
    assert bodies == {"delivery-001": None, "delivery-002": {"number": 2}}
    assert not add(store, 1), "a replay is still detected"
    assert store.outbox.shorten(rows_days=-1) == 1
    assert [row.delivery for row in store.outbox.rows()] == ["delivery-002"]


def test_data_is_kept_by_the_migration_up_and_down(empty_url: str) -> None:
    with Store.open(empty_url) as store:
        run = record_run(store)
        add(store, 1)
    migrate.downgrade(empty_url, "0007")
    engine = make_engine(empty_url)
    with reading(engine) as connection:
        assert not inspect(connection).has_table("outbox")
    engine.dispose()
    migrate.upgrade(empty_url)
    with Store.open(empty_url) as store:
        assert store.runs.get(run.id).id == run.id
        assert store.outbox.rows() == []
        assert add(store, 1)


def test_the_webhook_never_migrates(empty_url: str) -> None:
    with pytest.raises(ConfigError, match="not up to date"):
        Outbox.for_webhook(empty_url)
    migrate.upgrade(empty_url)
    assert Outbox.for_webhook(empty_url).waiting() == 0
