"""Copies all rows from one database to another with the same schema."""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, MetaData, Table, insert, inspect, literal, select, text

# The migrations write it; SQLite's own tables are not listed by SQLAlchemy.
REVISION_TABLE = "alembic_version"
# A row may hold all samples of a metric, so only some are in memory at a time.
_BATCH = 200


def table_names(connection: Connection) -> list[str]:
    """Return the names of all tables but that of the schema's revision."""
    return sorted(set(inspect(connection).get_table_names()) - {REVISION_TABLE})


def tables_of(connection: Connection, names: Iterable[str]) -> list[Table]:
    """Return these tables as the database has them, referenced ones first."""
    metadata = MetaData()
    metadata.reflect(connection, only=list(names), resolve_fks=False)
    return metadata.sorted_tables


def copy_rows(source: Connection, target: Connection, names: Sequence[str]) -> dict[str, int]:
    """Copy all rows of these tables; values are not interpreted, so JSON keeps its exact text.

    Args:
        names: tables that both databases have, with the same columns; empty in `target`.

    Returns:
        The number of copied rows by table.
    """
    source_tables = {table.name: table for table in tables_of(source, names)}
    copied = {}
    for table in tables_of(target, names):
        query = select(source_tables[table.name]).execution_options(stream_results=True, max_row_buffer=_BATCH)
        copied[table.name] = 0
        for batch in source.execute(query).mappings().partitions(_BATCH):
            target.execute(insert(table), [dict(row) for row in batch])
            copied[table.name] += len(batch)
    return copied


def filled_tables(connection: Connection, names: Iterable[str]) -> list[str]:
    """Return the tables that have rows."""
    first_rows = {
        table.name: select(literal(1)).select_from(table).limit(1) for table in tables_of(connection, names)
    }
    return [name for name, query in first_rows.items() if connection.execute(query).first()]


def lock_tables(connection: Connection, names: Iterable[str]) -> None:
    """Keep other transactions out until this one ends; a SQLite transaction that writes does so from its start."""
    if connection.dialect.name == "postgresql":
        listed = ", ".join(f'"{name}"' for name in names)
        connection.execute(text(f"LOCK TABLE {listed} IN ACCESS EXCLUSIVE MODE"))


def clear(connection: Connection, names: Iterable[str]) -> None:
    """Delete all rows of these tables."""
    tables = tables_of(connection, names)
    if connection.dialect.name == "postgresql":
        listed = ", ".join(f'"{table.name}"' for table in tables)
        connection.execute(text(f"TRUNCATE {listed}"))
        return
    for table in reversed(tables):
        connection.execute(table.delete())


def lift_limits(connection: Connection) -> None:
    """Remove the time limits of this transaction, except that for locks: large databases take long."""
    if connection.dialect.name == "postgresql":
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(text(f"SET LOCAL {limit} = 0"))
