"""An upgrade goes from process to process: no task upgrades the database, and no task fails a run for it."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from tests.support import postgres
from tests.support.stories import a_plan, a_record, a_run, open_store

from tipcflow.config.cluster import Cluster
from tipcflow.domain import ExitRecord, MemberState
from tipcflow.store import Store, migrate
from tipcflow.store.engine import UnreachableError, make_engine, writing
from tipcflow.store.migrate import WrongSchemaError

pytestmark = pytest.mark.slow


@pytest.fixture
def url(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", empty_url)
    return empty_url


def stamp(url: str, revision: str) -> None:
    engine = make_engine(url)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :new"), {"new": revision})
    engine.dispose()


def older(url: str) -> str:
    Store.open(url).close()
    migrate.downgrade(url, migrate.revisions()[-2])
    return migrate.revisions()[-2]


def test_a_task_gives_an_empty_database_its_tables(url: str) -> None:
    Store.open_in_task(wait_s=0).close()
    assert migrate.current(url) == migrate.HEAD


def test_a_task_never_upgrades_an_older_database(url: str) -> None:
    before = older(url)
    with pytest.raises(WrongSchemaError, match=r"(?s)not up to date.*db upgrade"):
        Store.open_in_task(wait_s=0)
    assert migrate.current(url) == before


@pytest.mark.parametrize("which", ["older", "newer"])
def test_a_task_waits_until_the_database_has_its_schema(
    url: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tipcflow.store.repository._POLL_S", 0.05)
    if which == "older":
        older(url)
    else:
        Store.open(url).close()
        stamp(url, "9999")

    def others() -> None:
        time.sleep(0.3)
        if which == "older":
            migrate.upgrade(url)
        else:
            stamp(url, migrate.HEAD)

    upgrade = threading.Thread(target=others)
    upgrade.start()
    with Store.open_in_task(wait_s=60) as store:
        assert store.runs.newest() == []
    upgrade.join()


def test_newer_database_is_an_error_of_a_task_after_the_deadline(url: str) -> None:
    Store.open(url).close()
    stamp(url, "9999")
    with pytest.raises(WrongSchemaError, match="newer than this tipcflow"):
        Store.open_in_task(wait_s=0.1)


def test_a_command_upgrades_its_own_file_and_no_servers_database(url: str, kind: str) -> None:
    before = older(url)
    if kind == "sqlite":
        Store.open(url).close()
        assert migrate.current(url) == migrate.HEAD
    else:
        with pytest.raises(WrongSchemaError, match=r"(?s)not up to date.*db upgrade"):
            Store.open(url)
        assert migrate.current(url) == before


def test_a_record_of_a_newer_runner_is_read() -> None:
    record: dict[str, Any] = a_record("r").model_dump(mode="json")
    newer = {**record, "temperature": 7, "outputs": [{"path": "x", "exists": True, "color": "red"}]}
    assert ExitRecord.model_validate(newer).outputs[0].path == "x"
    state = MemberState.model_validate({"node": "a", "record": newer, "legs": {"l": newer}, "mood": "good"})
    assert state.record is not None
    assert state.record.reason == record["reason"]


def test_the_plan_of_a_newer_version_is_read(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.db") as store:
        store.runs.create(a_run(), a_plan())
        body = a_plan().model_dump(mode="json")
        body["urgency"] = body["steps"][0]["urgency"] = 3
        with writing(store.database.engine) as connection:
            connection.execute(text("UPDATE plans SET body = :body"), {"body": json.dumps(body)})
        assert store.plans.get(a_run().id) == a_plan()


def test_configuration_stays_strict() -> None:
    with pytest.raises(ValueError, match="mood"):
        Cluster.model_validate({"name": "lab", "nodes": [], "mood": "good"})


@pytest.mark.process
def test_a_task_waits_for_a_server_that_refuses_connections(
    postgres_server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.create()
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", url)
    allow = f'ALTER DATABASE "{postgres.name_of(url)}" ALLOW_CONNECTIONS'
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"{allow} false")
        with pytest.raises(UnreachableError, match="not currently accepting connections"):
            Store.open_in_task(wait_s=0)
        opened: list[Store] = []
        task = threading.Thread(target=lambda: opened.append(Store.open_in_task(wait_s=60)))
        task.start()
        time.sleep(0.5)  # the server refuses the task
        assert task.is_alive()
        admin.execute(f"{allow} true")
    task.join(30)
    assert opened
    opened[0].close()
