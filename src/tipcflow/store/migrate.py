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
_LOCK = 0x71FCF10


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
        InfraError: when it cannot be reached.
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
    from alembic import command

    engine = make_engine(url, foreign_keys=False)
    try:
        with reachable(url), writing(engine) as connection:
            if engine.dialect.name == "postgresql":
                for limit in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
                    connection.execute(text(f"SET LOCAL {limit} = 0"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            before = revision_of(connection)
            refuse_newer(url, before)
            if before != target:
                if check is not None:
                    check(connection)
                config = _config()
                config.attributes["connection"] = connection
                (command.upgrade if up else command.downgrade)(config, target)
                _check_references(connection)
            return before
    finally:
        engine.dispose()


def _check_references(connection: Connection) -> None:
    """SQLite migrates without foreign keys, so all references are checked before the commit."""
    if connection.dialect.name == "sqlite":
        broken = connection.execute(text("PRAGMA foreign_key_check")).fetchall()
        if broken:
            raise RuntimeError(f"the migration breaks {len(broken)} references, first {tuple(broken[0])}")


def refuse_newer(url: str, revision: str) -> None:
    """Refuse a database that a newer tipcflow has migrated.

    Raises:
        WrongSchemaError: naming both revisions.
    """
    if revision and revision not in revisions():
        raise WrongSchemaError(
            f"the database {safe_url(url)} is newer than this tipcflow",
            found=f"schema {revision}",
            expected=f"schema {HEAD} or older",
            hint="install the tipcflow that migrated it, or name another database in TIPCFLOW_DATABASE_URL",
        )


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
