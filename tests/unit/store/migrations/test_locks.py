"""Locks of a migration on a real PostgreSQL whose tables another session holds."""

import re
import threading
from urllib.parse import urlsplit

import psycopg
import pytest

from tipcflow.domain import InfraError
from tipcflow.store import migrate
from tipcflow.store.migrations import locks

pytestmark = pytest.mark.process
OLDER = "0001"


@pytest.fixture
def older(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with an older schema; turns are short."""
    migrate.downgrade(postgres_url, OLDER)
    monkeypatch.setattr(locks, "LOCK_S", 0.3)
    monkeypatch.setattr(locks, "PAUSE_S", 0.5)
    return postgres_url


def lock_everything(url: str) -> psycopg.Connection:
    session = psycopg.connect(f"{url}&application_name=report")
    tables = session.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    names = ", ".join(f'"{name}"' for (name,) in tables if name != "alembic_version")
    session.execute(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
    return session


def test_sessions_that_hold_tables_are_named(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TURNS", 2)
    with lock_everything(older) as session:
        pid = session.info.backend_pid
        with pytest.raises(InfraError) as caught:
            migrate.upgrade(older)
    assert re.search(
        rf"is unchanged: in 2 turns of 0.3 s, its tables were locked by pid {pid} "
        r"\(user tipcflow, report, idle in transaction, query since [\d :-]+ UTC\)",
        caught.value.message,
    )
    assert migrate.current(older) == OLDER


def test_migration_waits_for_a_short_transaction(older: str) -> None:
    session = lock_everything(older)
    end = threading.Timer(1.0, session.close)
    end.start()
    assert migrate.upgrade(older) == OLDER
    end.join()
    assert migrate.current(older) == migrate.head()


def test_readers_continue_between_the_turns(older: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "TURNS", 3)
    failed: list[Exception] = []

    def upgrade() -> None:
        try:
            migrate.upgrade(older)
        except InfraError as error:
            failed.append(error)

    with lock_everything(older), psycopg.connect(older, autocommit=True) as reader:
        upgrading = threading.Thread(target=upgrade)
        upgrading.start()
        while upgrading.is_alive():
            reader.execute("SELECT count(*) FROM runs")
        upgrading.join()
    assert len(failed) == 1


def test_other_migration_is_named_after_its_deadline(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "OTHER_S", 0.2)
    monkeypatch.setattr(locks, "_POLL_S", 0.1)
    elsewhere = urlsplit(postgres_url)._replace(path="/postgres").geturl()
    with (
        psycopg.connect(elsewhere) as foreign,
        psycopg.connect(f"{postgres_url}&application_name=other") as session,
    ):
        foreign.execute("SELECT pg_advisory_xact_lock(%s)", (locks._KEY,))
        session.execute("SELECT pg_advisory_xact_lock(%s)", (locks._KEY,))
        pid = session.info.backend_pid
        expected = rf"not ended within 0.2 s: pid {pid} \(user tipcflow, other, idle in [^()]*\)(\n|$)"
        with pytest.raises(InfraError, match=expected):
            migrate.upgrade(postgres_url)
