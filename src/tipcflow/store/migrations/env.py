"""Runs the migrations on the connection that `tipcflow.store.migrate` hands over, in its transaction."""

from typing import Any, Literal

from alembic import context
from sqlalchemy.types import TypeDecorator

from tipcflow.store.schema import metadata


def render(kind: str, item: Any, _: Any) -> str | Literal[False]:
    """Migrations name the databases' own types: they must still run when ours have changed."""
    if kind == "type" and isinstance(item, TypeDecorator):
        return f"sa.{type(item.impl).__name__}()"
    return False


connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run `tipcflow db upgrade`: migrations are started from code only")

context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=True,
    render_item=render,
)
with context.begin_transaction():
    context.run_migrations()
