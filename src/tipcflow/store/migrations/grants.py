"""Rights of a PostgreSQL role for the web server: it reads the metrics database, and adds webhook deliveries."""

from sqlalchemy import Connection, text

from tipcflow.config.settings import safe_url
from tipcflow.domain import ConfigError
from tipcflow.store import migrate
from tipcflow.store.engine import make_engine, reachable, writing
from tipcflow.store.schema import outbox

_FACTS = text(
    "SELECT current_user, pg_get_userbyid(relowner) AS owner, pg_has_role(relowner, 'USAGE') AS owned, "
    "EXISTS (SELECT FROM pg_roles WHERE rolname = :role) AS known, quote_ident(current_schema()) AS schema "
    "FROM pg_class WHERE oid = CAST(:outbox AS regclass)"
)


def grant_reader(url: str, role: str) -> None:
    """Let a role of PostgreSQL read all tables of tipcflow, also later ones, and insert rows into the outbox.

    The role may change and delete nothing. A table that is dropped and created again loses the right to insert, as
    the outbox by a downgrade and upgrade, so call this after each upgrade.

    Args:
        url: of the database, as a user with the rights of the tables' owner.

    Raises:
        ConfigError: not PostgreSQL, another schema, an unknown role, or another user than the owner.
        InfraError: the database cannot be reached.
    """
    engine = make_engine(url)
    try:
        if engine.dialect.name != "postgresql":
            raise ConfigError(
                "only PostgreSQL has roles",
                key="TIPCFLOW_DATABASE_URL",
                found=safe_url(url),
                expected="postgresql://user@host/name",
            )
        with reachable(url), writing(engine) as connection:
            revision = migrate.revision_of(connection)
            migrate.refuse_newer(url, revision)
            if revision != migrate.HEAD:
                raise migrate.outdated(url, revision)
            _grant(connection, url, role)
    finally:
        engine.dispose()


def _grant(connection: Connection, url: str, role: str) -> None:
    facts = connection.execute(_FACTS, {"role": role, "outbox": outbox.name}).one()
    if not facts.known:
        raise ConfigError(
            f"{safe_url(url)} has no such role",
            key="ROLE",
            found=role,
            expected="a role of this PostgreSQL server, made by CREATE ROLE … LOGIN",
        )
    if not facts.owned:
        raise ConfigError(
            "only the owner of the tables can grant rights to them",
            key="TIPCFLOW_DATABASE_URL",
            found=f"user {facts.current_user}",
            expected=f"user {facts.owner}, as for `tipcflow db upgrade`",
        )
    grantee = connection.dialect.identifier_preparer.quote_identifier(role)
    for statement in (
        f"GRANT USAGE ON SCHEMA {facts.schema} TO {grantee}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {facts.schema} TO {grantee}",
        f"ALTER DEFAULT PRIVILEGES IN SCHEMA {facts.schema} GRANT SELECT ON TABLES TO {grantee}",
        f"GRANT INSERT ON {facts.schema}.{outbox.name} TO {grantee}",
    ):
        connection.exec_driver_sql(statement.replace("%", "%%"))
