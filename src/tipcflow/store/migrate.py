"""Schema versions: one linear chain of Alembic migrations inside the package, run from code only."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError
from tipcflow.store.engine import make_engine, reachable, reading, writing

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import Script

# Known without importing Alembic, so that opening an up-to-date database stays quick. A test compares the two.
HEAD = "0016"


class WrongSchemaError(ConfigError):
    """The database is newer or older than this code: another version of tipcflow uses it, as during an upgrade."""


def head() -> str:
    """The newest revision of this version of tipcflow."""
    return HEAD


def current(url: str) -> str:
    """The revision of a database, '' for an empty one.

    Raises:
        InfraError: when the database cannot be reached.
    """
    engine = make_engine(url)
    try:
        with reachable(url):
            return engine_revision(engine)
    finally:
        engine.dispose()


def engine_revision(engine: Engine) -> str:
    """The same for an engine; driver errors pass."""
    with reading(engine) as connection:
        return revision_of(connection)


def revision_of(connection: Connection) -> str:
    """The same for a connection."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""


def upgrade(url: str, revision: str = HEAD) -> str:
    """Bring a database to a revision, in one transaction and under a lock; returns the revision it had before.

    Raises:
        ConfigError: when the database is newer than this code.
        InfraError: when it cannot be reached, or other sessions hold its tables or migrate it.
    """
    return _migrate(url, revision, up=True)


def upgrade_connection(connection: Connection, revision: str) -> None:
    """Bring the database of an open transaction to a newer revision."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def downgrade(url: str, revision: str = "base", *, check: Callable[[Connection], None] | None = None) -> str:
    """Downgrade a database to a revision; `base` drops all tables: **the data is lost**.

    Args:
        check: is called in the transaction before the first change, and raises an error to refuse it.
    """
    return _migrate(url, revision, up=False, check=check)


def _migrate(url: str, target: str, *, up: bool, check: Callable[[Connection], None] | None = None) -> str:
    from tipcflow.store.migrations.locks import limit_waits, take_turns

    engine = make_engine(url, foreign_keys=False)

    def migrate() -> str:
        """Migrate in one transaction; return the revision before."""
        with writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                limit_waits(connection, url)
            before = revision_of(connection)
            refuse_newer(url, before)
            if before != target:
                if check is not None:
                    check(connection)
                _apply(connection, target, up=up)
            return before

    try:
        with reachable(url):
            return take_turns(engine, url, migrate)
    finally:
        engine.dispose()


def _apply(connection: Connection, target: str, *, up: bool) -> None:
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    (command.upgrade if up else command.downgrade)(config, target)
    _check_references(connection)


def _check_references(connection: Connection) -> None:
    """SQLite migrates without foreign keys, so all references are checked before the commit."""
    if connection.dialect.name == "sqlite":
        broken = connection.execute(text("PRAGMA foreign_key_check")).fetchall()
        if broken:
            raise RuntimeError(f"the migration breaks {len(broken)} references, first {tuple(broken[0])}")


def refuse_newer(url: str, revision: str) -> None:
    """Refuse a database that a newer tipcflow has migrated, or another program, such as Airflow.

    Raises:
        ConfigError: the database is one of another program.
        WrongSchemaError: naming both revisions.
    """
    if revision and revision not in revisions():
        if not _has_runs(url):
            raise ConfigError(
                f"the database {safe_url(url)} is one of another program, which also uses Alembic",
                found=f"schema {revision} without a table runs",
                expected="a database of tipcflow, or an empty one",
                hint="name another database in TIPCFLOW_DATABASE_URL",
            )
        raise WrongSchemaError(
            f"the database {safe_url(url)} is newer than this tipcflow",
            found=f"schema {revision}",
            expected=f"schema {HEAD} or older",
            hint="install the tipcflow that migrated it, or name another database in TIPCFLOW_DATABASE_URL",
        )


def _has_runs(url: str) -> bool:
    """Whether the database has the table of runs, which every version of tipcflow has."""
    engine = make_engine(url)
    try:
        with reachable(url), reading(engine) as connection:
            return inspect(connection).has_table("runs")
    finally:
        engine.dispose()


def outdated(url: str, revision: str) -> WrongSchemaError:
    """The error for a database with an older schema, or none."""
    return WrongSchemaError(
        f"the database {safe_url(url)} is not up to date",
        found=f"schema {revision or 'none'}",
        expected=f"schema {HEAD}",
        hint="run `tipcflow db upgrade`",
    )


def revisions() -> list[str]:
    """All revisions of this version of tipcflow, oldest first."""
    if HEAD == "0001":
        return [HEAD]
    return [script.revision for script in scripts()][::-1]


def scripts() -> list["Script"]:
    """All migrations of this version of tipcflow, newest first."""
    from alembic.script import ScriptDirectory

    return list(ScriptDirectory.from_config(_config()).walk_revisions())


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    return config
