"""A SQLite file that is deleted, replaced or made read-only while a store has it open."""

import os
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store

from tipcflow.domain import DatabaseLostError, Status
from tipcflow.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tipcflow.db"


def remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()


def test_nothing_is_claimed_to_be_stored_in_a_deleted_file(path: Path) -> None:
    with open_store(path) as store:
        store.runs.create(a_run("r1"))
        remove(path)
        with pytest.raises(DatabaseLostError) as raised:
            store.runs.finish("r1", Status.PASS, "", 1.0)
        assert str(raised.value) == f"the metrics database {path} was deleted or replaced during the run"
        assert raised.value.status is Status.INFRA_FAILURE
        with pytest.raises(DatabaseLostError):
            store.runs.get("r1")
        assert not path.exists(), "an empty database was created in its place"


def test_file_deleted_during_a_transaction_is_an_error(path: Path) -> None:
    with open_store(path) as store, pytest.raises(DatabaseLostError), store.database.write():
        remove(path)


def test_a_replaced_file_is_neither_read_nor_damaged(path: Path) -> None:
    with open_store(path) as store:
        store.runs.create(a_run("old"))
        remove(path)
        with open_store(path) as other:
            other.runs.create(a_run("new"))
            with pytest.raises(DatabaseLostError):
                store.runs.create(a_run("newer"))
            store.close()
            other.runs.create(a_run("last"))
    with open_store(path) as after:
        assert {run.id for run in after.runs.newest()} == {"new", "last"}


def test_lost_file_stays_lost_after_a_move_back(path: Path) -> None:
    with open_store(path) as store:
        path.rename(path.with_name("aside"))
        with pytest.raises(DatabaseLostError):
            store.now()
        path.with_name("aside").rename(path)
        with pytest.raises(DatabaseLostError):
            store.now()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_that_became_read_only_can_be_read(path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = path if what == "file" else path.parent
    with open_store(path) as store:
        store.runs.create(a_run("r1"))
        # Root may write everything; tests/cluster/test_own_trouble.py drops that capability.
        monkeypatch.setattr(os, "access", lambda one, mode: one != refused)
        store.runs.get("r1")
        with pytest.raises(DatabaseLostError) as raised:
            store.runs.finish("r1", Status.PASS, "", 1.0)
    assert str(raised.value) == f"the metrics database {path} or its folder became read-only during the run"


def test_database_that_was_always_read_only_is_not_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(path).close()
    monkeypatch.setattr(os, "access", lambda one, mode: False)
    with Store.open(f"sqlite:///{path}") as store:
        store.runs.create(a_run("r1"))


def test_a_relative_path_means_the_same_file_in_another_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with Store.open("sqlite:///tipcflow.db") as store:
        os.chdir("/")
        store.runs.create(a_run("r1"))
