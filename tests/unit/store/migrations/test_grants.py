"""Rights of the web server's role: it reads all tables, inserts into the outbox, and changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support import postgres

from tipcflow.domain import ConfigError
from tipcflow.store import Store, migrate
from tipcflow.store.migrations.grants import grant_reader
from tipcflow.store.outbox import Outbox

DELIVERY: dict[str, Any] = {
    "delivery": "one",
    "body_sha256": "0" * 64,
    "connection": "app",
    "repository": "owner/name",
    "event": "push",
    "body": {"a": 1},
}
# A name that PostgreSQL accepts only in quotes.
ROLE, QUOTED = 'web "1"', '"web ""1"""'


@pytest.fixture
def owner(postgres_server: postgres.Server) -> Iterator[str]:
    """URL of a database with all tables, and a role that may log in and reads by default."""
    url = postgres_server.create()
    Store.open(url).close()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {QUOTED} LOGIN")
        admin.execute(f"ALTER ROLE {QUOTED} SET default_transaction_read_only = on")
    yield url
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"DROP OWNED BY {QUOTED}")
        admin.execute(f"DROP ROLE {QUOTED}")
    postgres_server.drop(url)


@pytest.fixture
def reader(owner: str) -> str:
    return owner.replace("tipcflow@", "web%20%221%22@")


@pytest.mark.process
def test_webhook_stores_deliveries_of_a_role_that_reads(owner: str, reader: str) -> None:
    grant_reader(owner, ROLE)
    grant_reader(owner, ROLE)
    webhook = Outbox.for_webhook(reader)
    assert webhook.add(**DELIVERY)
    assert not webhook.add(**DELIVERY), "a replay is detected"
    assert webhook.waiting() == 1
    for change in ("DELETE FROM outbox", "UPDATE outbox SET event = ''", "INSERT INTO runs (id) VALUES ('x')"):
        with psycopg.connect(reader, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(change)
            assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)


@pytest.mark.process
def test_later_tables_are_readable_before_the_next_grant(owner: str, reader: str) -> None:
    grant_reader(owner, ROLE)
    migrate.downgrade(owner, "0007")
    migrate.upgrade(owner)
    with psycopg.connect(reader) as connection:
        assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    grant_reader(owner, ROLE)
    assert Outbox.for_webhook(reader).add(**DELIVERY)


@pytest.mark.process
def test_refusals_name_the_expected_role(owner: str, reader: str, postgres_server: postgres.Server) -> None:
    with pytest.raises(ConfigError, match=r"ROLE: .* has no such role; found 'unknown'; expected .*CREATE ROLE"):
        grant_reader(owner, "unknown")
    with psycopg.connect(owner, autocommit=True) as admin:
        admin.execute(f"GRANT SELECT ON alembic_version TO {QUOTED}")
    with pytest.raises(ConfigError, match=r"only the owner .*; found 'user web \"1\"'; expected user tipcflow,"):
        grant_reader(reader, ROLE)
    empty = postgres_server.create()
    with pytest.raises(ConfigError, match="not up to date"):
        grant_reader(empty, ROLE)
    postgres_server.drop(empty)


def test_sqlite_has_no_roles(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"TIPCFLOW_DATABASE_URL: only PostgreSQL has roles; found 'sqlite:"):
        grant_reader(f"sqlite:///{tmp_path}/tipcflow.db", ROLE)
