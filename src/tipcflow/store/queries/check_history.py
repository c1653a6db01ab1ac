"""The results of one check over the runs of a line (a chain in one mode and environment class)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from tipcflow.domain import CheckResult, Run
from tipcflow.domain.run_documents import QuarantinedDocument
from tipcflow.store.base import Part, among
from tipcflow.store.run.line_states import is_state
from tipcflow.store.schema import check_results, documents, runs

# Runs that are read at most: a failure rate of 1 % is ended by 299 clean runs.
_RUNS = 1000
# Databases limit the number of values in a query.
_AT_ONCE = 500


@dataclass(frozen=True)
class CheckedRun:
    """A run with a verdict, and its results of the check."""

    run: Run
    results: tuple[CheckResult, ...]

    @property
    def tested(self) -> tuple[str, str, str]:
        """What the run tested: framework build, suite commit, suite content."""
        return (self.run.framework, self.run.suite_commit, self.run.suite_sha256)


class CheckHistory(Part):
    """Read-only queries over stored check results."""

    def of_line(self, chain: str, mode: str, environment: str, check: str) -> list[CheckedRun]:
        """Return the newest runs of a line with a result of a check, newest first: runs that may be the state of
        the line (`is_state`)."""
        line = (runs.c.chain == chain, runs.c.mode == mode, runs.c.environment == environment)
        query = select(runs).where(*line, *is_state(runs)).order_by(runs.c.created_at.desc(), runs.c.id.desc())
        with self._read() as connection:
            known = [Run.model_validate(dict(row)) for row in connection.execute(query.limit(_RUNS)).mappings()]
            results: dict[str, list[CheckResult]] = {}
            for start in range(0, len(known), _AT_ONCE):
                ids = [run.id for run in known[start : start + _AT_ONCE]]
                rows = select(check_results).where(check_results.c.run.in_(ids), check_results.c.name == check)
                for row in connection.execute(rows.order_by(check_results.c.position)).mappings():
                    results.setdefault(row["run"], []).append(_result(row))
        return [CheckedRun(run, tuple(results[run.id])) for run in known if run.id in results]

    def quarantined(self, run_ids: Collection[str]) -> set[str]:
        """Return those of these runs that have quarantined failures."""
        query = select(documents.c.run).where(documents.c.name == QuarantinedDocument.NAME)
        with self._read() as connection:
            return set(connection.execute(query.where(among(connection, documents.c.run, run_ids))).scalars())


def _result(row: Mapping[Any, Any]) -> CheckResult:
    fields = {name: row[name] for name in CheckResult.model_fields if name in row}
    return CheckResult(check=row["name"], values=row["details"], **fields)
