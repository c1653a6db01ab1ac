"""A backup has every committed row, and a database that is restored from it reads the same."""

import json
import math
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.support import postgres
from tests.support.stories import a_plan, a_run, losses, record_run

from tipcflow.domain import CheckResult, ConfigError, InfraError, Status
from tipcflow.domain.run_documents import CertificateDocument
from tipcflow.store import Store, migrate
from tipcflow.store.backup import restore as restoring
from tipcflow.store.backup.restore import restore
from tipcflow.store.backup.rows import table_names, tables_of
from tipcflow.store.backup.save import save
from tipcflow.store.engine import make_engine, reading, writing

pytestmark = pytest.mark.slow

WRITER = """
import itertools, sys
from tests.support.stories import a_plan, a_run
from tipcflow.store import Store
with Store.open(sys.argv[1]) as store:
    for number in itertools.count():
        store.runs.create(a_run(f"20261121t{number:06}-toy-0000"), a_plan())
        print(number, flush=True)
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of another machine, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'elsewhere' / 'tipcflow.db'}"
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    url = server.create()
    yield url
    server.drop(url)


def rows_of(url: str) -> dict[str, list[str]]:
    """All rows by table, as text; without the fences, which restoring changes."""
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            return {
                table.name: sorted(
                    json.dumps(dict(row), sort_keys=True) for row in connection.execute(table.select()).mappings()
                )
                for table in tables_of(connection, table_names(connection))
                if table.name != "fences"
            }
    finally:
        engine.dispose()


def fill(store: Store) -> str:
    """A finished run with losses, checks, a certificate and a lease; returns its id."""
    run = record_run(store, a_run(chain="sample/é'\"\\/\N{GREEK SMALL LETTER ALPHA}"), status=None)
    store.measurements.add(losses(run.id, [math.nan, math.inf, 0.1 + 0.2], rank=1))
    check = CheckResult(check="ran.exit", status=Status.PASS, reason="", values={"limit": 0.1 + 0.2})
    store.checks.replace(run.id, [check])
    store.documents.put(run.id, CertificateDocument({"run": run.id, "verdict": "pass", "value": 0.1 + 0.2}))
    assert store.leases.acquire(run.id, [("node-a", 0)], owner="test", ttl_s=60)
    store.runs.finish(run.id, Status.REGRESSION, "loss 2.0 → 3.0", run.created_at + 20)
    return run.id


def test_a_restored_database_reads_the_same(
    store: Store, database_url: str, elsewhere: str, tmp_path: Path
) -> None:
    run = fill(store)
    saved = save(database_url, tmp_path / "backup")
    assert (saved.revision, saved.runs) == (migrate.HEAD, 1)
    restored = restore(elsewhere, tmp_path / "backup")
    assert (restored.runs, restored.replaced) == (1, False)
    before, after = rows_of(database_url), rows_of(elsewhere)
    assert sum(map(len, before.values())) >= 15
    assert after == before
    with Store.open(elsewhere, migrate=False) as other:
        assert other.runs.get(run) == store.runs.get(run)
        assert other.checks.results(run) == store.checks.results(run)
        assert other.documents.get(run, CertificateDocument) == store.documents.get(run, CertificateDocument)
        assert other.history.facts(run) == store.history.facts(run)
        # The copy takes new runs.
        record_run(other, a_run("20261122t000000-other-0000"))


def test_nothing_committed_before_the_backup_is_lost_while_a_process_writes(
    store: Store, database_url: str, elsewhere: str, tmp_path: Path
) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, database_url], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout
        for _ in range(20):
            committed = int(writer.stdout.readline())
        save(database_url, tmp_path / "backup")
        # It wrote all the time: it is not blocked, and later runs are not a part of the backup.
        saved = len(store.runs.newest(limit=100_000))
        while int(writer.stdout.readline()) <= saved:
            pass
    finally:
        writer.kill()
        writer.wait(30)
    restore(elsewhere, tmp_path / "backup")
    with Store.open(elsewhere, migrate=False) as other:
        runs = sorted(run.id for run in other.runs.newest(limit=100_000))
        assert len(runs) > committed
        assert runs == [f"20261121t{number:06}-toy-0000" for number in range(len(runs))]
        # A run and its plan are one transaction.
        assert other.plans.get(runs[-1]) == a_plan()
        assert len(runs) < len(store.runs.newest(limit=100_000))


def test_a_fence_only_grows(store: Store, database_url: str, tmp_path: Path) -> None:
    """A node refuses a fence below one that it has seen."""
    run = fill(store)
    save(database_url, tmp_path / "backup")
    for _ in range(3):
        store.leases.release(run)
        newest = store.leases.acquire(run, [("node-a", 0)], owner="test", ttl_s=60)
    restore(database_url, tmp_path / "backup", replace=True)
    store.leases.release(run)
    fence = store.leases.acquire(run, [("node-a", 0)], owner="test", ttl_s=60)
    assert newest
    assert fence
    assert newest < fence


def test_a_database_with_data_is_replaced_only_on_request(store: Store, database_url: str, tmp_path: Path) -> None:
    fill(store)
    save(database_url, tmp_path / "backup")
    before = rows_of(database_url)
    record_run(store, a_run("20261122t000000-later-0000"))
    with pytest.raises(ConfigError, match=r"(?s)not empty; found 'rows in attempts, .*--replace deletes its rows"):
        restore(database_url, tmp_path / "backup")
    assert len(store.runs.newest()) == 2
    assert restore(database_url, tmp_path / "backup", replace=True).replaced
    assert rows_of(database_url) == before


def test_a_restore_that_fails_changes_nothing(
    store: Store, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    save(database_url, tmp_path / "backup")
    record_run(store, a_run("20261122t000000-later-0000"))
    before = rows_of(database_url)
    copy_rows = restoring.copy_rows

    def fail(*arguments: Any) -> None:
        copy_rows(*arguments)
        raise RuntimeError("power failure")

    monkeypatch.setattr(restoring, "copy_rows", fail)
    with pytest.raises(RuntimeError, match="power failure"):
        restore(database_url, tmp_path / "backup", replace=True)
    assert rows_of(database_url) == before


def test_backup_of_an_older_database_is_upgraded_by_the_restore(
    empty_url: str, elsewhere: str, tmp_path: Path
) -> None:
    with Store.open(empty_url) as store:
        record_run(store)
    migrate.downgrade(empty_url, "0007")
    assert save(empty_url, tmp_path / "backup").revision == "0007"
    assert migrate.current(empty_url) == "0007"
    assert restore(elsewhere, tmp_path / "backup").revision == "0007"
    assert migrate.current(elsewhere) == migrate.HEAD
    with Store.open(elsewhere, migrate=False) as other:
        assert other.runs.newest()[0].status is Status.PASS


def test_an_older_database_with_rows_is_not_upgraded_by_a_refused_restore(
    empty_url: str, tmp_path: Path, sqlite_template: Path
) -> None:
    backup = Path(shutil.copy(sqlite_template, tmp_path / "backup"))
    with Store.open(empty_url) as store:
        record_run(store)
    migrate.downgrade(empty_url, "0007")
    with pytest.raises(ConfigError, match="not empty"):
        restore(empty_url, backup)
    assert migrate.current(empty_url) == "0007"


def test_newer_databases_and_backups_are_refused(
    store: Store, database_url: str, elsewhere: str, tmp_path: Path
) -> None:
    engine = make_engine(database_url)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConfigError, match="newer than this tipcflow; found 'schema 9999'"):
        save(database_url, tmp_path / "backup")
    assert list(tmp_path.glob("*backup*")) == []
    newer = tmp_path / "newer"
    with sqlite3.connect(newer) as connection:
        connection.executescript(
            "CREATE TABLE runs (id TEXT); CREATE TABLE alembic_version (version_num TEXT);"
            "INSERT INTO alembic_version VALUES ('9999')"
        )
    with pytest.raises(ConfigError, match=r"made by a newer tipcflow; found 'schema 9999'; expected"):
        restore(elsewhere, newer)
    with pytest.raises(ConfigError, match="newer than this tipcflow"):
        restore(database_url, make_backup(tmp_path), replace=True)


def make_backup(folder: Path) -> Path:
    """A backup of one run."""
    url = f"sqlite:///{folder / 'made.db'}"
    with Store.open(url) as store:
        fill(store)
    save(url, folder / "made")
    return folder / "made"


def test_wrong_files_are_refused(elsewhere: str, tmp_path: Path) -> None:
    good = make_backup(tmp_path).read_bytes()
    truncated, flipped, text_file, other = (tmp_path / name for name in ("truncated", "flipped", "text", "other"))
    truncated.write_bytes(good[: len(good) // 2])
    flipped.write_bytes(good[:4096] + bytes(4096) + good[8192:])
    text_file.write_text("-- PostgreSQL database dump")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE photos (id INTEGER)")
    expected = {
        truncated: "the backup is damaged: ",
        flipped: "the backup is damaged: ",
        text_file: "not a backup of tipcflow; found 'a file of another kind'",
        other: "not a backup of tipcflow; found 'a SQLite database of another program'",
        tmp_path / "none": "no such file",
        tmp_path: "no such file",
    }
    for file, message in expected.items():
        with pytest.raises(ConfigError, match=message):
            restore(elsewhere, file)
    with Store.open(elsewhere) as other_store:
        assert other_store.runs.newest() == []


def test_database_is_not_restored_from_the_same_file(tmp_path: Path) -> None:
    make_backup(tmp_path)
    with pytest.raises(ConfigError, match="the backup is the database itself"):
        restore(f"sqlite:///{tmp_path / 'made.db'}", tmp_path / "made.db", replace=True)


def test_a_file_is_never_overwritten_and_none_is_left_behind(
    store: Store, database_url: str, empty_url: str, tmp_path: Path
) -> None:
    target = tmp_path / "backups" / "one"
    with pytest.raises(ConfigError, match="no such folder"):
        save(database_url, target)
    target.parent.mkdir()
    target.write_text("precious")
    with pytest.raises(ConfigError, match="never overwrites a file"):
        save(database_url, target)
    assert target.read_text() == "precious"
    with pytest.raises(ConfigError, match="expected a path without"):
        save("postgresql://tipcflow@/x?host=/nowhere", target.parent / "two?")
    with pytest.raises(InfraError, match="cannot use the database"):
        save("postgresql://tipcflow@/x?host=/nowhere", target.parent / "two")
    save(database_url, target.parent / "two")
    assert (target.parent / "two").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in target.parent.iterdir()) == ["one", "two"]


def test_an_empty_database_is_not_backed_up(empty_url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no tables"):
        save(empty_url, tmp_path / "backup")
    assert list(tmp_path.glob("*backup*")) == []
