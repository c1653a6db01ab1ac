"""Polls of triggers share a few connections, which outlive errors, restarts of the server and forks."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import Pool
from tests.support import postgres
from tests.support.stories import a_run

from tipcflow.domain import InfraError
from tipcflow.store import Store, engine, migrate
from tipcflow.store.engine import POLLS, make_engine, writing
from tipcflow.store.leases.rows import lock
from tipcflow.store.migrate import WrongSchemaError
from tipcflow.store.polls import pool
from tipcflow.store.polls.pool import _POOLS, _discard, poll_store


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for each in list(_POOLS.values()):
        _discard(each)


@pytest.fixture
def url(postgres_server: postgres.Server, postgres_template: str, monkeypatch: pytest.MonkeyPatch) -> str:
    made = postgres_server.create(postgres_template)
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", made)
    return made


@pytest.fixture
def logins(url: str) -> Iterator[list[object]]:
    """Every connection that this process has made to a database."""
    made: list[object] = []

    def add(connection: object, _: object) -> None:
        made.append(connection)

    event.listen(Pool, "connect", add)
    yield made
    event.remove(Pool, "connect", add)


def backend(store: Store) -> int:
    """The server's process of the store's connection."""
    with store.database.read() as connection:
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def polled() -> int:
    with poll_store() as store:
        return backend(store)


@pytest.mark.process
def test_polls_after_each_other_share_one_login(logins: list[object]) -> None:
    assert len({polled() for _ in range(20)}) == 1
    assert len(logins) == 1


@pytest.mark.process
def test_concurrent_polls_share_a_few_logins(logins: list[object]) -> None:
    results: list[int] = []
    ready = threading.Barrier(24)

    def work() -> None:
        ready.wait(30)
        for _ in range(5):
            results.append(polled())

    threads = [threading.Thread(target=work) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 24 * 5
    assert len(set(results)) <= POLLS
    assert len(logins) <= POLLS


@pytest.mark.process
def test_a_poll_that_waits_for_a_lock_ends_and_keeps_its_connection(
    url: str, logins: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "POLL_LOCK_S", 0.5)
    holder = make_engine(url)
    with poll_store() as store:
        store.runs.create(a_run("run-1"))
        before = backend(store)
    with writing(holder) as connection:
        lock(connection)
        began = time.monotonic()
        with pytest.raises(DBAPIError, match="lock timeout"), poll_store() as store:
            store.queue.join("run-1", [("192.0.2.1", 0)], owner="", ttl_s=60)
        assert time.monotonic() - began < 20
    with poll_store() as store:
        assert store.queue.join("run-1", [("192.0.2.1", 0)], owner="", ttl_s=60).free
        assert backend(store) == before
    assert len(logins) == 2, "of the holder and of the polls"
    holder.dispose()


@pytest.mark.process
def test_connections_of_polls_have_short_limits(url: str) -> None:
    with poll_store() as store, store.database.read() as connection:
        for name, seconds in (
            ("lock_timeout", engine.POLL_LOCK_S),
            ("statement_timeout", engine.POLL_STATEMENT_S),
        ):
            shown = connection.execute(text("SELECT setting FROM pg_settings WHERE name = :name"), {"name": name})
            assert float(shown.scalar_one()) == seconds * 1000


@pytest.mark.process
def test_a_poll_connects_again_after_a_restart_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.running() as server:
        monkeypatch.setenv("TIPCFLOW_DATABASE_URL", server.create())
        polled()
        server.stop()
        began = time.monotonic()
        for _ in range(2):
            with pytest.raises((DBAPIError, InfraError)):
                polled()
        assert time.monotonic() - began < 20, "a poll does not wait for the server"
        assert not _POOLS
        server.start()
        assert polled() == polled()
        server.stop()
        server.start()
        assert polled() == polled(), "without a failed poll in between"


@pytest.mark.process
def test_a_forked_process_has_its_own_connections(url: str) -> None:
    own = polled()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if polled() != own else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert polled() == own


@pytest.mark.process
def test_a_schema_that_changes_meanwhile_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stamp(revision: str) -> None:
        with poll_store() as store, writing(store.database.engine) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :new"), {"new": revision})

    stamp(migrate.revisions()[-2])
    polled()
    (kept,) = _POOLS.values()
    kept._check_at -= pool.SCHEMA_EVERY_S
    with pytest.raises(WrongSchemaError, match="not up to date"):
        polled()
    with writing(kept.store.database.engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :new"), {"new": migrate.HEAD})
    polled()


@pytest.mark.process
def test_connections_to_the_previous_database_are_closed(
    url: str, postgres_server: postgres.Server, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = polled()
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", postgres_server.create(postgres_template))
    with poll_store() as store, store.database.read() as connection:
        until = time.monotonic() + 30
        alive = text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
        while connection.execute(alive, {"pid": before}).scalar_one():
            connection.execute(text("SELECT pg_stat_clear_snapshot()"))
            assert time.monotonic() < until, "the connection is still open"


def test_a_sqlite_file_is_opened_for_each_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.db"
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{file}")
    with poll_store() as store:
        store.runs.create(a_run("run-1"))
    file.unlink()
    with poll_store() as store:
        assert store.runs.newest() == []
    assert not _POOLS
