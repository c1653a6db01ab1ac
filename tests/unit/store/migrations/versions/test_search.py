"""The index of the text search, which needs an extension of PostgreSQL."""

import psycopg
import pytest
from sqlalchemy import text
from tests.support.postgres import Server, name_of
from tests.support.stories import a_run, record_run

from tipcflow.store import Store, migrate
from tipcflow.store.queries.pages import SEARCHED, RunFilter
from tipcflow.store.queries.readonly import ReadonlyStore

pytestmark = pytest.mark.process
_INDEXES = text("SELECT count(*) FROM pg_indexes WHERE indexname = 'ix_runs_search'")


def _found(url: str, words: str) -> list[str]:
    pages = ReadonlyStore.of(url)
    try:
        return [run.id for run in pages.pages.runs(RunFilter(text=words), limit=5).rows]
    finally:
        pages.close()


def test_the_text_search_uses_the_index(postgres_server: Server) -> None:
    url = postgres_server.create()
    with Store.open(url) as store:
        record_run(store, a_run("r01", framework="paddle 3.4_dev"))
        record_run(store, a_run("r02", framework="paddle 3.4-dev"))
        with store.database.read() as connection:
            extensions = set(connection.execute(text("SELECT extname FROM pg_extension")).scalars())
            if "pg_trgm" not in extensions:
                pytest.skip("PostgreSQL has no extension pg_trgm")
            assert connection.execute(_INDEXES).scalar() == 1
    assert _found(url, "PADDLE 3.4_DEV") == ["r01"]
    pages = ReadonlyStore.of(url)
    with pages.database.read() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        text_of = "(" + " || ' ' || ".join(f"runs.{name}" for name in SEARCHED) + ")"
        query = f"EXPLAIN SELECT id FROM runs WHERE {text_of} COLLATE \"C\" ILIKE '%paddle%' ESCAPE '/'"
        plan = "\n".join(row[0] for row in connection.execute(text(query)))
    pages.close()
    assert "ix_runs_search" in plan
    migrate.downgrade(url, "0012")
    migrate.upgrade(url)
    postgres_server.drop(url)


def test_an_account_that_may_not_create_extensions_has_no_index(postgres_server: Server) -> None:
    url = postgres_server.create()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE limited LOGIN")
        connection.execute("GRANT ALL ON SCHEMA public TO limited")
    limited = url.replace("tipcflow@", "limited@")
    assert name_of(limited) == name_of(url)
    with Store.open(limited) as store:
        record_run(store, a_run("r01", framework="paddle 3.4_dev"))
        with store.database.read() as connection:
            assert connection.execute(_INDEXES).scalar() == 0
    assert _found(limited, "PADDLE 3.4_DEV") == ["r01"]
    assert migrate.downgrade(limited, "0012") == migrate.HEAD
    postgres_server.drop(url)
