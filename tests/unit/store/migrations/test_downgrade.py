"""Downgrades: what is lost is named before, active runs are refused, and the rest is kept."""

from pathlib import Path

import pytest
from tests.support.stories import a_run, record_run

from tipcflow.domain import ConfigError, Status
from tipcflow.store import Store, migrate
from tipcflow.store.migrations.downgrade import downgrade, plan_downgrade

NUMBERS = ("20261121t000001-a-0000", "20261121t000002-a-0000")


@pytest.fixture
def filled(database_url: str) -> str:
    """A database with two ended runs and a report on nodes."""
    with Store.open(database_url, migrate=False) as store:
        for run in NUMBERS:
            record_run(store, a_run(run))
        store.node_histories.put("", 90.0, 1.0, {"nodes": []})
    return database_url


def test_lost_tables_are_named_with_their_rows(filled: str) -> None:
    plan = plan_downgrade(filled, "0013")
    assert (plan.before, plan.after) == (migrate.head(), "0013")
    assert plan.steps == (
        ("0016", "Remove the indexes."),
        ("0015", "Remove the table: its rows follow from the runs."),
        ("0014", "Remove the table: its rows follow from the runs."),
    )
    assert plan.tables == {"line_states": 1, "node_histories": 1}
    assert (plan.columns, plan.active) == ((), ())
    assert migrate.current(filled) == migrate.head(), "a plan changes nothing"


def test_plan_describes_every_undone_migration(filled: str) -> None:
    plan = plan_downgrade(filled, "0003")
    assert {"alerts", "outbox", "quarantines", "series"} <= set(plan.tables)
    assert len(plan.steps) == int(migrate.head()) - 3
    assert dict(plan.steps)["0004"] == "Convert series back to samples in rows."
    assert all(text.endswith(".") for _, text in plan.steps)


def test_runs_are_kept_and_upgraded_again(filled: str) -> None:
    downgrade(filled, "0013")
    assert migrate.current(filled) == "0013"
    migrate.upgrade(filled)
    with Store.open(filled, migrate=False) as store:
        assert {run.id for run in store.runs.newest()} == set(NUMBERS)


def test_active_runs_are_refused(filled: str) -> None:
    with Store.open(filled, migrate=False) as store:
        store.runs.create(a_run("20261121t000003-a-0000"))
    assert plan_downgrade(filled, "0013").active == ("20261121t000003-a-0000",)
    with pytest.raises(ConfigError, match="runs are active") as refused:
        downgrade(filled, "0013")
    assert "1 without a status: 20261121t000003-a-0000" in str(refused.value)
    assert migrate.current(filled) == migrate.head()
    with Store.open(filled, migrate=False) as store:
        store.runs.finish("20261121t000003-a-0000", Status.CANCELLED, "", 1.0)
    downgrade(filled, "0014")
    assert migrate.current(filled) == "0014"


@pytest.mark.parametrize("revision", ["9999", "base", "", "head"])
def test_only_older_schemas_are_accepted(database_url: str, revision: str) -> None:
    with pytest.raises(ConfigError, match="REVISION") as refused:
        plan_downgrade(database_url, revision)
    assert "an older schema: 0001, 0002" in str(refused.value)


def test_newer_schema_is_refused(filled: str) -> None:
    downgrade(filled, "0013")
    with pytest.raises(ConfigError, match="has schema 0013"):
        plan_downgrade(filled, "0014")
    assert plan_downgrade(filled, "0013").steps == ()


def test_empty_database_has_nothing_to_downgrade(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has schema none"):
        plan_downgrade(f"sqlite:///{tmp_path}/new.db", "0001")


def test_database_without_a_schema_is_not_downgraded_to_an_empty_revision(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has schema none; expected an older schema: none exists"):
        plan_downgrade(f"sqlite:///{tmp_path / 'new.db'}", "")
