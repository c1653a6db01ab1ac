"""Outgoing messages: coalesced, in order, never lost; attempts are unique by key and by request; schema 0009."""

import threading

import pytest
from sqlalchemy import inspect
from tests.support.stories import record_run

from tipcflow.store import Store, migrate
from tipcflow.store.engine import make_engine, reading
from tipcflow.store.github import messages
from tipcflow.store.github.attempts import HELD, NEW, PullAttempt

SHA = "a" * 40


def attempt(request: str = "head", *, number: int = 1, state: str = NEW, sha: str = SHA) -> PullAttempt:
    return PullAttempt(repository="o/r", number=7, head_sha=sha, attempt=number, request=request, state=state)


def put(store: Store, text: str, *, subject: str = "7", rank: float = 0.0, final: bool = True) -> bool:
    return store.messages.put("o/r", "comment", subject, {"text": text}, rank=rank, final=final)


def test_an_unsent_content_is_replaced_and_sent_once(store: Store) -> None:
    assert put(store, "queued")
    assert put(store, "running")
    assert not put(store, "running")
    (message,) = store.messages.take()
    assert message.body == {"text": "running"}
    assert store.messages.take() == [], "another process has it"
    store.messages.sent(message)
    assert not put(store, "running")
    assert store.messages.waiting() == []


def test_content_changed_during_delivery_is_sent_again(store: Store) -> None:
    put(store, "running")
    (message,) = store.messages.take()
    put(store, "done")
    store.messages.sent(message)
    (waiting,) = store.messages.waiting()
    assert waiting.body == {"text": "done"}


def test_updates_are_apart_and_the_final_one_is_not(store: Store) -> None:
    put(store, "queued")
    store.messages.sent(store.messages.take()[0])
    put(store, "running", final=False)
    assert store.messages.take() == []
    assert store.messages.waiting()[0].due_at > store.now() + messages.COALESCE_S - 5
    put(store, "done", final=True)
    assert store.messages.take()[0].body == {"text": "done"}


def test_an_old_content_does_not_replace_a_newer_one(store: Store) -> None:
    put(store, "of the new commit", rank=2.0)
    assert not put(store, "of the old commit", rank=1.0)
    assert store.messages.take()[0].body == {"text": "of the new commit"}


def test_a_failed_message_waits_and_keeps_its_place(store: Store) -> None:
    put(store, "first", subject="1")
    put(store, "second", subject="2")
    first, second = store.messages.take()
    store.messages.failed(first, "GitHub answers 502", wait_s=60)
    store.messages.postpone(second, wait_s=0)
    assert [one.subject for one in store.messages.take()] == ["2"]
    (kept, _) = store.messages.waiting()
    assert (kept.subject, kept.tries, kept.error) == ("1", 1, "GitHub answers 502")
    put(store, "new", subject="1")
    assert not store.messages.due(), "a new content does not shorten the pause after a failure"


def test_a_message_whose_sender_died_is_sent_again(store: Store) -> None:
    put(store, "done")
    assert store.messages.take(hold_s=0.0)
    assert store.messages.take()[0].body == {"text": "done"}


def test_a_recorded_report_is_sent_already(store: Store) -> None:
    assert store.messages.record("digest", "vision 2026-W48", {})
    assert not store.messages.record("digest", "vision 2026-W48", {})
    assert store.messages.record("digest", "vision 2026-W49", {})
    assert (store.messages.take(), store.messages.waiting(), store.messages.due()) == ([], [], False)
    store.messages.withdraw("digest", "vision 2026-W48")
    assert store.messages.record("digest", "vision 2026-W48", {})
    assert store.messages.forget(-1) == 2


def test_a_report_is_recorded_again_if_its_body_differs(store: Store) -> None:
    assert [store.messages.record("weekly report", "w", {"sha256": body}) for body in "aabba"] == [
        True,
        False,
        True,
        False,
        True,
    ]
    recorded = store.messages.get("", "weekly report", "w")
    assert recorded is not None
    assert recorded.body == {"sha256": "a"}


def test_an_attempt_is_added_once_by_key_and_by_request(store: Store) -> None:
    assert store.pulls.add(attempt())
    assert not store.pulls.add(attempt())
    assert not store.pulls.add(attempt("comment:1"))
    assert not store.pulls.add(attempt("head", number=2))
    assert store.pulls.add(attempt("comment:1", number=2))
    assert [one.attempt for one in store.pulls.of("o/r", 7)] == [1, 2]


def test_a_held_attempt_can_be_started_once(store: Store) -> None:
    assert store.pulls.add(attempt("", state=HELD))
    assert store.pulls.living() == []
    assert store.pulls.approve("o/r", 7, SHA, "maintainer")
    assert not store.pulls.approve("o/r", 7, SHA, "other")
    assert store.pulls.approved("o/r", 7) == {SHA}
    assert store.pulls.add(attempt("comment:1"))
    assert not store.pulls.add(attempt("comment:2"))
    assert [one.request for one in store.pulls.living()] == ["comment:1"]


def test_concurrent_processes_add_one_attempt(database_url: str) -> None:
    added: list[bool] = []

    def work() -> None:
        with Store.open(database_url, migrate=False) as mine:
            added.append(mine.pulls.add(attempt()))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [False] * 5 + [True]


def test_concurrent_processes_record_a_report_once(database_url: str) -> None:
    recorded: list[bool] = []

    def work() -> None:
        with Store.open(database_url, migrate=False) as mine:
            recorded.append(mine.messages.record("digest", "vision 2026-W48", {}))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(recorded) == [False] * 5 + [True]


def test_a_cancel_spares_the_new_commit_and_every_merge_group(store: Store) -> None:
    store.pulls.add(attempt())
    store.pulls.add(attempt(sha="b" * 40))
    store.pulls.add(attempt().model_copy(update={"number": 0}))
    assert store.pulls.cancel("o/r", 7, "newer", but="b" * 40) == 1
    assert {one.head_sha[0]: one.cancel for one in store.pulls.living() if one.number} == {"a": "newer", "b": ""}
    with pytest.raises(ValueError, match="only attempts of pull requests"):
        store.pulls.cancel("o/r", 0, "newer")


def test_0009_and_back_keeps_the_runs(database_url: str) -> None:
    with Store.open(database_url) as store:
        run = record_run(store)
        store.pulls.add(attempt())
    migrate.downgrade(database_url, "0008")
    engine = make_engine(database_url)
    with reading(engine) as connection:
        tables = inspect(connection).get_table_names()
    engine.dispose()
    assert not {"pull_attempts", "approvals", "messages"} & set(tables)
    assert migrate.upgrade(database_url) == "0008"
    with Store.open(database_url) as store:
        assert store.pulls.of("o/r", 7) == []
        assert store.runs.get(run.id).chain == run.chain
