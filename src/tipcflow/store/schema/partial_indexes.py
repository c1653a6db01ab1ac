"""Partial indexes of runs, and their conditions.

Queries repeat a condition word by word and without parameters; otherwise, SQLite does not know that the index has
all rows.
"""

from collections.abc import Iterable

from sqlalchemy import Index, text

from tipcflow.domain import Status
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.schema.tables import runs


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_ALERTS = (Status.REGRESSION, Status.UNCONFIRMED, Status.IMPROVEMENT, Status.FAILED)
_OUTCOMES = (Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED, Status.FAILED)
# Runs whose checks may have found that a metric changed.
MAY_ALERT = f"status IN ({_listed(_ALERTS)})"
# Runs with an outcome that can be compared with that of equal runs, which have the same values of SUBJECT.
REPEATABLE = f"status IN ({_listed(_OUTCOMES)}) AND \"trigger\" NOT IN ({_listed(SIDE_RUNS)}) AND framework <> ''"
SUBJECT = ("chain", "mode", "environment", "framework", "suite_commit", "suite_sha256")

_INDEXES = {
    "ix_runs_may_alert": (("created_at",), MAY_ALERT),
    # With all columns that the search for equal runs reads (queries/repeats.py): it takes a third of the time.
    "ix_runs_subject": ((*SUBJECT, "created_at", "status"), REPEATABLE),
}
for _name, (_columns, _condition) in _INDEXES.items():
    _where = text(_condition)
    Index(_name, *(runs.c[column] for column in _columns), sqlite_where=_where, postgresql_where=_where)
