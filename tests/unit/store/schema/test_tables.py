"""The tables: all are exported, and the database refuses rows without content."""

from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from tests.support.stories import T0, a_run

from tipcflow.store import Store, schema
from tipcflow.store.engine import writing

ROW: dict[str, Any] = {
    "number": 1,
    "schema_version": 1,
    **dict.fromkeys(("chain", "mode", "environment", "name", "step", "leg", "metric", "signature"), "x"),
    **dict.fromkeys(("owner", "who", "why"), "mia"),
    "run": a_run().id,
    "evidence": [],
    "failed": 1,
    "judged": 2,
    "created_at": T0,
    "expires_at": T0 + 1,
    "released_by": "",
    "released_because": "",
}


def test_every_table_is_exported() -> None:
    assert set(schema.metadata.tables) <= set(schema.__all__)
    assert all(schema.metadata.tables[name] is getattr(schema, name) for name in schema.metadata.tables)


@pytest.mark.parametrize(
    "wrong",
    [
        {"owner": ""},
        {"who": ""},
        {"why": ""},
        {"failed": 0},
        {"failed": 3},
        {"expires_at": T0},
        {"released_at": T0},
        {"released_by": "mia"},
        {"run": "unknown"},
    ],
)
def test_a_quarantine_without_reason_evidence_or_end_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    store.runs.create(a_run())
    engine = store.database.engine
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(insert(schema.quarantines), ROW | wrong)
    with writing(engine) as connection:
        connection.execute(insert(schema.quarantines), ROW)
