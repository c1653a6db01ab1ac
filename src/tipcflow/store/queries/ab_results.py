"""Results of A/B comparisons."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, select

from tipcflow.domain import Run
from tipcflow.domain.run_documents import AbDocument
from tipcflow.domain.triggers import AB
from tipcflow.store.base import Part
from tipcflow.store.schema import documents, runs


class AbResults(Part):
    """Read-only queries; their cost depends on the number of runs since a time."""

    def newest(self, since: float, *, limit: int) -> list[tuple[Run, Mapping[str, Any]]]:
        """Return (first run, result as `tipcflow ab --json` prints it), newest first.

        Args:
            since: of the first run, seconds since the epoch.
        """
        own = and_(documents.c.run == runs.c.id, documents.c.name == AbDocument.NAME)
        query = (
            select(runs, documents.c.body)
            .join(documents, own)
            .where(runs.c.created_at >= since, runs.c.trigger == AB, documents.c.body.is_not(None))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        results = []
        for row in rows:
            result = AbDocument.load(row["id"], row.pop("body")).root
            results.append((Run.model_validate(row), result if isinstance(result, Mapping) else {}))
        return results

    def unfinished(self) -> list[Run]:
        """Return the runs of A/B comparisons without a status, oldest first."""
        query = select(runs).where(runs.c.status.is_(None), runs.c.trigger == AB).order_by(runs.c.created_at)
        with self._read() as connection:
            return [Run.model_validate(dict(row)) for row in connection.execute(query).mappings()]
