"""Whole runs that have ended, stored many to a transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, bindparam, exists, func, insert, select, update

from tipcflow.domain import Attempt, CheckResult, LegKey, Measurement, NodeFacts, Plan, Run, Status
from tipcflow.domain.generated import GeneratedDocument
from tipcflow.domain.run_documents import Document
from tipcflow.store.base import Part
from tipcflow.store.results.checks import check_rows
from tipcflow.store.results.nodes import environment_row
from tipcflow.store.run import line_states
from tipcflow.store.run.plans import put_plan
from tipcflow.store.run.steps import leg_row
from tipcflow.store.schema import attempts, check_results, documents, environments, legs, runs, steps
from tipcflow.store.series.measurements import insert_new


@dataclass(frozen=True)
class RecordedRun:
    """A run with everything that is stored about it.

    Attributes:
        plan: None if the run ended before it had one.
        steps: step id -> (status, reason).
        legs: leg -> (status, reason), of attempt 1; of attempt 0 for legs that were not started.
        measurements: of attempts that are in `attempts`.
    """

    run: Run
    plan: Plan | None = None
    nodes: Sequence[NodeFacts] = ()
    attempts: Sequence[Attempt] = ()
    steps: Mapping[str, tuple[Status, str]] = field(default_factory=dict)
    legs: Mapping[LegKey, tuple[Status, str]] = field(default_factory=dict)
    measurements: Sequence[Measurement] = ()
    checks: Sequence[CheckResult] = ()
    documents: Sequence[Document] = ()


class Recorded(Part):
    """All tables of a run."""

    def add(self, recorded: Iterable[RecordedRun]) -> None:
        """Store new runs, all of them or none.

        Raises:
            sqlalchemy.exc.IntegrityError: a run with the same id exists.
        """
        recorded_runs = list(recorded)
        rows = {table: [row for each in recorded_runs for row in of(each)] for table, of in _ROWS.items()}
        with self._write() as connection:
            for each in recorded_runs:
                connection.execute(insert(runs), each.run.model_dump())
                if each.plan is not None:
                    put_plan(connection, each.run.id, each.plan)
            statuses = [row for each in recorded_runs for row in _step_statuses(each)]
            if statuses:
                connection.execute(_SET_STEP, statuses)
            for table, table_rows in rows.items():
                if table_rows:
                    connection.execute(insert(table), table_rows)
            line_states.refresh(
                connection, [line_states.key_of(connection, each.run.id) for each in recorded_runs]
            )
            insert_new(connection, (item for each in recorded_runs for item in each.measurements))

    def counts(self) -> tuple[int, int]:
        """Return the number of generated runs, and of all others."""
        is_generated = exists().where(documents.c.run == runs.c.id, documents.c.name == GeneratedDocument.NAME)
        with self._read() as connection:
            total = int(connection.execute(select(func.count()).select_from(runs)).scalar_one())
            generated = int(
                connection.execute(select(func.count()).select_from(runs).where(is_generated)).scalar_one()
            )
        return generated, total - generated

    def has_generated(self) -> bool:
        """Return whether the newest run is generated, which then holds for the runs that pages show."""
        newest = select(runs.c.id).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(1).scalar_subquery()
        marked = select(documents.c.run).where(
            and_(documents.c.run == newest, documents.c.name == GeneratedDocument.NAME)
        )
        with self._read() as connection:
            return connection.execute(marked).first() is not None


_SET_STEP = (
    update(steps)
    .where(steps.c.run == bindparam("of_run"), steps.c.step == bindparam("of_step"))
    .values(status=bindparam("word"), reason=bindparam("why"))
)


def _step_statuses(each: RecordedRun) -> list[dict[str, Any]]:
    return [
        {"of_run": each.run.id, "of_step": step, "word": status, "why": reason}
        for step, (status, reason) in each.steps.items()
    ]


def _attempt_rows(each: RecordedRun) -> list[dict[str, Any]]:
    return [attempt.model_dump() | {"nodes": list(attempt.nodes)} for attempt in each.attempts]


def _leg_rows(each: RecordedRun) -> list[dict[str, Any]]:
    started = {(attempt.run, attempt.step) for attempt in each.attempts}
    return [
        leg_row(each.run.id, key, int((each.run.id, key.step) in started), status, reason)
        for key, (status, reason) in each.legs.items()
    ]


def _document_rows(each: RecordedRun) -> list[dict[str, Any]]:
    at = each.run.ended_at or each.run.created_at
    return [
        {"run": each.run.id, "name": document.NAME, "body": document.body(), "updated_at": at}
        for document in each.documents
    ]


# In an order that satisfies the foreign keys.
_ROWS: Mapping[Any, Any] = {
    attempts: _attempt_rows,
    environments: lambda each: [environment_row(each.run.id, facts) for facts in each.nodes],
    legs: _leg_rows,
    check_results: lambda each: check_rows(each.run.id, each.checks),
    documents: _document_rows,
}
