"""The table of the speed of nodes over time, as the hourly maintenance found it."""

from sqlalchemy import Column, Double, Table

from tipcflow.store.schema.tables import metadata
from tipcflow.store.types import JsonText, Words

node_histories = Table(
    "node_histories",
    metadata,
    # '' for all clusters.
    Column("cluster", Words, primary_key=True, nullable=False),
    Column("days", Double, primary_key=True, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", JsonText, nullable=False),
)
