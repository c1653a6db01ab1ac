"""Downgrade of a database to the schema of an older version: what it loses, and when it is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, inspect, select, text
from sqlalchemy import table as sql_table

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError
from tipcflow.store import migrate
from tipcflow.store.engine import make_engine, reachable, reading, writing

_LISTED = 5


@dataclass(frozen=True)
class Downgrade:
    """What a downgrade does.

    Attributes:
        before, after: revisions.
        steps: (revision, what its downgrade does), the newest first.
        tables: table that is dropped -> number of its rows.
        columns: `table.column` that is dropped, sorted.
        active: IDs of runs without a status.
    """

    before: str
    after: str
    steps: tuple[tuple[str, str], ...] = ()
    tables: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    active: tuple[str, ...] = ()


def plan_downgrade(url: str, revision: str) -> Downgrade:
    """Return what a downgrade would do; changes nothing.

    Raises:
        ConfigError: the database has no schema, or the revision is not an older one.
        InfraError: the database cannot be reached.
    """
    before = migrate.current(url)
    migrate.refuse_newer(url, before)
    known = migrate.revisions()
    older = known[: known.index(before)] if before else []
    if not revision or revision not in (before, *older):
        raise ConfigError(
            f"{safe_url(url)} has schema {before or 'none'}",
            key="REVISION",
            found=revision,
            expected=f"an older schema: {', '.join(older) or 'none exists'}",
        )
    tables, columns = _lost(before, revision)
    engine = make_engine(url)
    try:
        with reachable(url), reading(engine) as connection:
            counts = {name: _count(connection, name) for name in tables}
            active = _active(connection)
    finally:
        engine.dispose()
    return Downgrade(before, revision, _steps(before, revision), counts, columns, active)


def downgrade(url: str, revision: str) -> None:
    """Downgrade a database in one transaction.

    Raises:
        ConfigError: runs have no status.
        InfraError: the database cannot be reached.
    """
    migrate.downgrade(url, revision, check=refuse_active)


def refuse_active(connection: Connection) -> None:
    """Refuse a downgrade while runs are active; no run can start before the transaction ends.

    Raises:
        ConfigError: naming the runs.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
    if active := _active(connection):
        more = f" and {len(active) - _LISTED} more" if len(active) > _LISTED else ""
        raise ConfigError(
            "runs are active",
            found=f"{len(active)} without a status: {', '.join(active[:_LISTED])}{more}",
            expected="no active run: an older version cannot continue them",
            hint="wait for them or stop them; the DAG `maintenance` ends abandoned ones after a day",
        )


def _active(connection: Connection) -> tuple[str, ...]:
    query = text("SELECT id FROM runs WHERE status IS NULL ORDER BY created_at, id")
    return tuple(connection.execute(query).scalars())


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(select(func.count()).select_from(sql_table(table))).scalar_one())


def _lost(before: str, after: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tables and the columns that the older schema does not have, found with an empty database."""
    schemas = []
    engine = make_engine("sqlite://", foreign_keys=False)
    try:
        with writing(engine) as connection:
            for revision in (after, before):
                migrate.upgrade_connection(connection, revision)
                schemas.append(_schema(connection))
    finally:
        engine.dispose()
    old, new = schemas
    columns = (f"{name}.{column}" for name in new if name in old for column in new[name] - old[name])
    return tuple(sorted(set(new) - set(old))), tuple(sorted(columns))


def _schema(connection: Connection) -> dict[str, set[str]]:
    names = inspect(connection)
    return {name: {column["name"] for column in names.get_columns(name)} for name in names.get_table_names()}


def _steps(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """Return each migration that is undone, with the first line of its `downgrade`."""
    return tuple(
        (script.revision, (script.module.downgrade.__doc__ or "").strip().partition("\n")[0])
        for script in migrate.scripts()
        if after < script.revision <= before
    )
