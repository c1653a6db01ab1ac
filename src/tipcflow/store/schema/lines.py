"""The table of the states of lines (`tipcflow.store.run.line_states`)."""

from sqlalchemy import Column, Double, ForeignKeyConstraint, Integer, Table

from tipcflow.store.schema.tables import metadata
from tipcflow.store.types import Words

line_states = Table(
    "line_states",
    metadata,
    *(Column(name, Words, primary_key=True, nullable=False) for name in ("chain", "mode", "environment")),
    # The newest run with a verdict, with the fields that pages read of all lines: a join would scan all runs.
    *(Column(name, Words, nullable=False) for name in ("run", "suite", "cluster", "status", "framework")),
    Column("created_at", Double, nullable=False),
    # Green runs that may be the state of the line: later runs are compared with them.
    Column("accepted", Integer, nullable=False),
    ForeignKeyConstraint(["run"], ["runs.id"]),
)
