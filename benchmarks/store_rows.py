"""The rejected layout, one row per measurement, so that the comparison can be repeated."""

from collections.abc import Iterable
from statistics import median
from typing import Any

from sqlalchemy import Connection, text

from tipcflow.domain import Measurement

KEY = ("run", "step", "leg", "attempt", "node", "rank", "metric", "phase", "ordinal")
COLUMNS = (*KEY, "value", "unit", "epoch", "iteration", "source", "offset")
WHOLE = ("attempt", "rank", "ordinal", "epoch", "iteration")


class Rows:
    """The table `rows`, next to the others."""

    def create(self, connection: Connection) -> None:
        """Create it with the key that makes inserts idempotent."""
        kinds = {"value": "double precision", "offset": "bigint"} | dict.fromkeys(WHOLE, "integer")
        report = ", ".join(f'"{name}" {kinds.get(name, "text")} NOT NULL' for name in COLUMNS)
        tail = " WITHOUT ROWID" if connection.dialect.name == "sqlite" else ""
        connection.exec_driver_sql(f"CREATE TABLE rows ({report}, PRIMARY KEY ({', '.join(KEY)})){tail}")

    def put(self, connection: Connection, run: str, items: Iterable[Measurement]) -> None:
        """Store measurements of a run."""
        rows = [(run, *(str(v) if n == "phase" else v for n, v in item if n in COLUMNS[1:])) for item in items]
        names = ", ".join(f'"{name}"' for name in Measurement.model_fields if name in COLUMNS)
        if connection.dialect.name == "sqlite":
            marks = ", ".join("?" * len(COLUMNS))
            connection.exec_driver_sql(f"INSERT INTO rows ({names}) VALUES ({marks})", rows)
            return
        driver: Any = connection.connection.dbapi_connection
        with driver.cursor() as cursor, cursor.copy(f"COPY rows ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def history(
        self, connection: Connection, chain: str, step: str, metric: str, environment: str
    ) -> dict[str, float]:
        """Run -> median over its ranks, as in `Store.history`."""
        query = text(
            "SELECT r.id, m.value FROM runs r JOIN rows m ON m.run = r.id WHERE r.chain = :chain "
            "AND r.environment = :environment AND m.step = :step AND m.metric = :metric ORDER BY r.created_at"
        )
        values: dict[str, list[float]] = {}
        requested = {"chain": chain, "environment": environment, "step": step, "metric": metric}
        for run, value in connection.execute(query, requested):
            values.setdefault(run, []).append(value)
        return {run: median(found) for run, found in values.items()}
