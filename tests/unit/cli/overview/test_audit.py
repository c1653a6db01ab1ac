"""`tipcflow audit`: decisions of users, also on GitHub."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.support.expected.golden import assert_golden
from tests.support.stories import T0, a_run
from tests.unit.store.test_audit import baseline

from tipcflow.cli.overview.audit import audit_lines
from tipcflow.report.overview.audit import audit_list
from tipcflow.store import Store
from tipcflow.store.schema import approvals

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"


@pytest.mark.parametrize("width", [80, None])
def test_decisions_equal_the_golden_files(database: Path, width: int | None) -> None:
    with Store.open() as store:
        store.runs.create(a_run())
        store.baselines.accept([baseline()])
        store.pulls.approve("o/r", 7, "a" * 40, "bob")
        with store.database.write() as connection:
            connection.execute(update(approvals).values(approved_at=T0 + 60))
        overview = audit_list(store.audit.entries(T0), at=T0 + 90, days=1, limit=9)
    lines = audit_lines(overview, width=width)
    assert_golden(GOLDEN / f"audit-{width}.txt", "\n".join(lines) + "\n")


def test_approvals_of_code_of_forks_are_printed(tipcflow: Callable[..., Any], database: Path) -> None:
    with Store.open() as store:
        store.pulls.approve("o/r", 7, "a" * 40, "bob")
        store.pulls.approve("o/r", 8, "b" * 40, "mia")
    line = tipcflow("audit", "--user", "bob").out.splitlines()[1]
    assert line.endswith(f"bob   approve code of fork  o/r#7  commit {'a' * 40}")
    entries = json.loads(tipcflow("audit", "--json").out)["entries"]
    assert {(entry["who"], entry["about"]) for entry in entries} == {("bob", "o/r#7"), ("mia", "o/r#8")}
