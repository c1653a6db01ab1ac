"""Sessions of pages: they cannot write, and an unusable database is reported."""

import shutil
import sqlite3
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from tests.support.postgres import Server
from tests.support.stories import T0, TRAIN, a_run, record_run

from tipcflow.domain import ConfigError, InfraError, Status, TipcflowError
from tipcflow.domain.run_documents import CertificateDocument
from tipcflow.store import Store
from tipcflow.store.queries.pages import RunFilter
from tipcflow.store.queries.readonly import ReadonlyStore


@pytest.fixture
def pages(store: Store, database_url: str) -> ReadonlyStore:
    return ReadonlyStore.of(database_url)


def test_pages_read_a_run(store: Store, pages: ReadonlyStore) -> None:
    run = record_run(store)
    pages.refuse_unusable()
    assert pages.runs.get(run.id) == run


def test_no_method_writes(store: Store, pages: ReadonlyStore) -> None:
    run = record_run(store)
    before = store.runs.get(run.id)
    for write in (
        lambda: pages.runs.create(a_run("other")),
        lambda: pages.runs.finish(run.id, Status.FAILED, "forged", T0),
        lambda: pages.runs.update(run.id, framework="forged"),
        lambda: pages.documents.put(run.id, CertificateDocument({})),
        lambda: pages.checks.replace(run.id, ()),
        lambda: pages.steps.set(run.id, TRAIN, Status.FAILED),
    ):
        with pytest.raises(DBAPIError, match=r"(?i)read-?only"):
            write()
    assert [one.id for one in store.runs.newest()] == [run.id]
    assert store.runs.get(run.id) == before


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM runs", "UPDATE runs SET reason = 'forged'", "CREATE TABLE t (x int)", "DROP TABLE runs"],
)
def test_no_statement_writes(store: Store, pages: ReadonlyStore, statement: str) -> None:
    record_run(store)
    with pytest.raises(DBAPIError, match=r"(?i)read-?only"), pages.database.write() as connection:
        connection.execute(text(statement))
    assert store.runs.newest()[0].reason == ""


def test_pages_read_commits_of_other_processes(store: Store, pages: ReadonlyStore) -> None:
    first = record_run(store)
    with store.database.write() as connection:
        connection.execute(text("UPDATE runs SET reason = 'not yet'"))
        assert pages.runs.get(first.id).reason == "", "a writer does not stop readers"
    assert pages.runs.get(first.id).reason == "not yet"


def test_the_writer_has_gone(tmp_path: Path, sqlite_template: Path) -> None:
    """The last writer takes the write-ahead log with it: a reader must do without."""
    path = tmp_path / "a ? # %41.db"
    shutil.copy(sqlite_template, path)
    url = f"sqlite:///{quote(str(path))}"
    with Store.open(url, migrate=False) as store:
        run = record_run(store)
    pages = ReadonlyStore.of(url)
    pages.refuse_unusable()
    assert pages.runs.get(run.id) == run


def result(url: str) -> TipcflowError:
    with pytest.raises(TipcflowError) as caught:
        ReadonlyStore.of(url).refuse_unusable()
    return caught.value


def test_missing_database_is_reported_and_not_created(tmp_path: Path) -> None:
    error = result(f"sqlite:///{tmp_path}/none/tipcflow.db")
    assert isinstance(error, InfraError)
    assert "there is no metrics database yet" in error.message
    assert not (tmp_path / "none").exists(), "looking makes nothing"


def test_older_and_newer_schemas_are_refused(store: Store, database_url: str) -> None:
    for revision, word, hint in (("", "older", "tipcflow db upgrade"), ("9999", "newer", "install the tipcflow")):
        with store.database.write() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})
        error = result(database_url)
        assert isinstance(error, ConfigError)
        assert f"is {word} than this tipcflow" in error.message
        assert hint in error.hint


def test_files_other_than_databases_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tipcflow.db").write_text("a picture of a cat " * 100)
    assert "not a database" in result(f"sqlite:///{tmp_path}/tipcflow.db").message
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    assert "found 'schema none'" in result(f"sqlite:///{tmp_path}/empty.db").message


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://u:hidden@h/d", "nonsense"])
def test_wrong_url_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ReadonlyStore.of(url)
    assert "hidden" not in str(caught.value)


def test_missing_server_is_reported_without_its_password() -> None:
    error = result("postgresql://tipcflow:hidden@127.0.0.1:9/none")
    assert isinstance(error, InfraError)
    assert "hidden" not in str(error)


@pytest.mark.process
def test_an_account_that_may_only_select(postgres_server: Server, postgres_template: str) -> None:
    url = postgres_server.create(postgres_template)
    with Store.open(url, migrate=False) as store:
        run = record_run(store)
        with store.database.write() as connection:
            connection.execute(text("CREATE ROLE reader LOGIN"))
            connection.execute(text("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"))
    pages = ReadonlyStore.of(url.replace("tipcflow@", "reader@"))
    try:
        pages.refuse_unusable()
        assert pages.runs.get(run.id) == run
    finally:
        pages.close()
        postgres_server.drop(url)


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_connection_is_used_again_until_its_file_is_replaced(
    store: Store, pages: ReadonlyStore, database_url: str, tmp_path: Path, sqlite_template: Path
) -> None:
    run = record_run(store)
    opened: list[object] = []
    event.listen(pages.database.engine, "connect", lambda connection, _: opened.append(connection))
    assert pages.runs.get(run.id) == pages.runs.get(run.id)
    assert len(opened) == 1
    store.close()
    other = tmp_path / "other.db"
    shutil.copy(sqlite_template, other)
    with Store.open(f"sqlite:///{other}", migrate=False) as another:
        record_run(another, a_run("of-the-other-file"))
    file = Path(pages.database.engine.url.database or "")
    for left in ("-wal", "-shm"):
        file.with_name(file.name + left).unlink(missing_ok=True)
    other.replace(file)
    assert [each.id for each in pages.runs.newest()] == ["of-the-other-file"]
    assert len(opened) == 2


def test_queries_of_a_snapshot_see_the_same_state(store: Store, pages: ReadonlyStore) -> None:
    run = record_run(store)
    opened: list[object] = []
    event.listen(pages.database.engine, "checkout", lambda connection, *_: opened.append(connection))
    with pages.snapshot() as snapshot:
        assert snapshot.runs.get(run.id) == run
        store.runs.finish(run.id, Status.FAILED, "judged again", T0 + 1000)
        assert snapshot.runs.get(run.id) == run
        assert [known.id for known in snapshot.pages.runs(RunFilter(), limit=5).rows] == [run.id]
    assert len(opened) == 1
    assert pages.runs.get(run.id).reason == "judged again"
