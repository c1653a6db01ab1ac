import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text
from tests.support.stories import record_run

from tipcflow.domain import ConfigError, InfraError
from tipcflow.store import Store, migrate
from tipcflow.store.engine import make_engine, reading, writing
from tipcflow.store.schema import metadata

# PostgreSQL has it where an extension is installed; the schema does not know it.
SEARCH = "ix_runs_search"

pytestmark = pytest.mark.slow


def _engine(url: str) -> Engine:
    return make_engine(url, foreign_keys=False)


def _tables(url: str) -> set[str]:
    engine = _engine(url)
    try:
        with reading(engine) as connection:
            return set(inspect(connection).get_table_names())
    finally:
        engine.dispose()


def _index(found: Any) -> tuple[str, ...]:
    options = found.get("dialect_options", {})
    where = " ".join(str(options.get(f"{dialect}_where", "")) for dialect in ("sqlite", "postgresql"))
    return (found["name"], str(found["column_names"]), str(found["unique"]), where)


def test_the_head_known_to_the_code_is_that_of_the_scripts() -> None:
    script = ScriptDirectory.from_config(migrate._config())
    assert script.get_heads() == [migrate.head()]
    assert script.get_bases() == ["0001"]
    assert migrate.revisions()[-1] == migrate.head()


def test_an_empty_database_is_upgraded_once(empty_url: str) -> None:
    assert migrate.current(empty_url) == ""
    assert migrate.upgrade(empty_url) == ""
    assert migrate.current(empty_url) == migrate.head()
    assert _tables(empty_url) == {*metadata.tables, "alembic_version"}
    assert migrate.upgrade(empty_url) == migrate.head()


def test_a_downgrade_removes_everything_also_with_data(empty_url: str) -> None:
    with Store.open(empty_url) as store:
        run = record_run(store)
        assert store.leases.acquire(run.id, [("node-a", 0)], owner="me", ttl_s=60)
    assert migrate.downgrade(empty_url) == migrate.head()
    assert _tables(empty_url) == {"alembic_version"}
    assert migrate.current(empty_url) == ""
    with Store.open(empty_url) as store:
        assert store.runs.newest() == []


def test_migrations_create_the_schema(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    engine = _engine(empty_url)
    try:
        with reading(engine) as connection:
            options = {"compare_type": True, "include_name": lambda name, *_: name != SEARCH}
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, metadata) == []
    finally:
        engine.dispose()


def test_migrations_make_the_same_constraints_as_the_schema(empty_url: str) -> None:
    """Alembic's comparison leaves CHECKs, keys and conditions of indexes out."""

    def seen(create: Callable[[Engine], Any]) -> dict[str, Any]:
        engine = _engine(empty_url)
        create(engine)
        with writing(engine) as connection:
            look = inspect(connection)
            found = {
                name: (
                    sorted((one["name"], one["sqltext"]) for one in look.get_check_constraints(name)),
                    look.get_pk_constraint(name),
                    sorted((one["name"], one["referred_columns"]) for one in look.get_foreign_keys(name)),
                    sorted(_index(one) for one in look.get_indexes(name) if one["name"] != SEARCH),
                    [(one["name"], str(one["type"]), one["nullable"]) for one in look.get_columns(name)],
                )
                for name in metadata.tables
            }
            if engine.dialect.name == "sqlite":
                found["without rowid"] = connection.execute(
                    text("SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID%'")
                ).fetchall()
        engine.dispose()
        return found

    migrated = seen(lambda _: migrate.upgrade(empty_url))
    migrate.downgrade(empty_url)
    assert seen(metadata.create_all) == migrated
    assert all(checks for table, (checks, *_) in migrated.items() if table == "runs")


def test_no_key_holds_null_and_no_column_holds_a_secret() -> None:
    for table in metadata.tables.values():
        assert list(table.primary_key), table.name
        assert not [column for column in table.primary_key if column.nullable]
    names = {column.name for table in metadata.tables.values() for column in table.columns}
    assert not [name for name in names if any(word in name for word in ("pass", "secret", "token", "credential"))]


def test_a_newer_database_is_refused_and_left_alone(empty_url: str) -> None:
    Store.open(empty_url).close()
    engine = _engine(empty_url)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for act in (Store.open, migrate.upgrade, migrate.downgrade):
        with pytest.raises(
            ConfigError, match=f"newer than this tipcflow.*found 'schema 9999'; expected schema {migrate.HEAD}"
        ):
            act(empty_url)
    assert migrate.current(empty_url) == "9999"


def test_without_migration_an_empty_database_is_refused(empty_url: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)not up to date.*db upgrade"):
        Store.open(empty_url, migrate=False)
    assert migrate.current(empty_url) == ""


@pytest.mark.process
def test_processes_that_start_at_once_migrate_once(empty_url: str, at_once: Callable[..., list[Any]]) -> None:
    assert at_once(*[["open", empty_url]] * 2) == [True] * 2
    assert migrate.current(empty_url) == migrate.head()


def test_a_migration_that_breaks_references_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    Store.open(url).close()

    def lose_runs(config: Any, revision: str) -> None:
        config.attributes["connection"].execute(text("INSERT INTO plans VALUES ('unknown', 1, '', '', '{}')"))

    monkeypatch.setattr("alembic.command.downgrade", lose_runs)
    with pytest.raises(RuntimeError, match="breaks 1 references"):
        migrate.downgrade(url)
    with sqlite3.connect(tmp_path / "x.db") as connection:
        assert connection.execute("SELECT count(*) FROM plans").fetchone() == (0,)


def test_file_without_a_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is a text file, and a long one, not a database" * 100)
    with pytest.raises(InfraError, match=r"cannot use the database sqlite:///.*x\.db: file is not a database"):
        Store.open(f"sqlite:///{tmp_path / 'x.db'}")


def test_missing_server_is_named_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(InfraError) as caught:
        Store.open(f"postgresql://me:hunter2@/x?host={tmp_path}")
    assert "cannot use the database postgresql://me:***@/x" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://me:hunter2@h/x", "nonsense", "postgresql+asyncpg://h/x", ""])
def test_another_kind_of_database_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not a database URL") as caught:
        Store.open(url)
    assert "hunter2" not in str(caught.value)


def test_sqlite_connections_have_the_settings(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'er' / 'x.db'}"
    with Store.open(url) as store, store.database.read() as connection:
        requested = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert requested == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 60000}


def test_database_of_another_program_is_named_as_one(empty_url: str) -> None:
    engine = make_engine(empty_url)
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num TEXT)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('29ce7909c52b')"))
    engine.dispose()
    with pytest.raises(
        ConfigError, match=r"is one of another program, .*found 'schema 29ce7909c52b without a table"
    ):
        migrate.upgrade(empty_url)
