"""A client of a PostgreSQL server that freezes with a lock stops the others for a while, not for ever."""

import time

import pytest
from sqlalchemy import text
from tests.support import postgres
from tests.support.stories import a_run

from tipcflow.store import Store, engine
from tipcflow.store.engine import make_engine, writing
from tipcflow.store.leases.rows import lock

pytestmark = pytest.mark.process


def test_every_connection_has_limits(postgres_server: postgres.Server, postgres_template: str) -> None:
    made = make_engine(postgres_server.create(postgres_template))
    with writing(made) as connection:
        for name, seconds in (
            ("idle_in_transaction_session_timeout", engine.IDLE_S),
            ("lock_timeout", engine.LOCK_S),
            ("statement_timeout", engine.STATEMENT_S),
        ):
            shown = connection.execute(text("SELECT setting FROM pg_settings WHERE name = :name"), {"name": name})
            assert float(shown.scalar_one()) == seconds * 1000
    assert engine.IDLE_S < engine.LOCK_S < engine.STATEMENT_S
    made.dispose()


def test_a_process_that_waits_for_a_frozen_clients_lock_continues(
    postgres_server: postgres.Server, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.create(postgres_template)
    frozen = make_engine(url)
    with monkeypatch.context() as patch:  # the other clients keep the usual limit, also on a busy machine
        patch.setattr(engine, "IDLE_S", 1.0)
        connection = frozen.connect()
    with Store.open(url) as store, connection:
        store.runs.create(a_run("run-1"))
        connection.begin()
        lock(connection)  # and sends nothing from here on
        began = time.monotonic()
        assert store.leases.acquire("run-1", [("node-a", 0)], owner="", ttl_s=60)
        assert time.monotonic() - began < 30
        connection.invalidate()
    frozen.dispose()
