"""Stored snapshots: a task whose folder is not that of the resolved run reports it, or uses the object store."""

import hashlib
import os
from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.execute.objects.object_store import DamagedObjectError
from tipcflow.execute.source.cache import keep_snapshot, kept_names, kept_snapshot
from tipcflow.execute.source.snapshot import Snapshot

SHA = hashlib.sha256(b"archive").hexdigest()
SNAPSHOT = Snapshot("c0ffee", b"archive", SHA, "a.txt", "text", frozenset({"a.txt"}))


def test_a_task_in_the_same_folder_gets_the_snapshot(tmp_path: Path) -> None:
    first, second = keep_snapshot(tmp_path, SNAPSHOT), keep_snapshot(tmp_path, SNAPSHOT)
    assert kept_snapshot(tmp_path, first) == kept_snapshot(tmp_path, second) == SNAPSHOT


def test_worker_with_a_separate_home_does_not_reuse_an_earlier_copy(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    keep_snapshot(there, SNAPSHOT)
    source = keep_snapshot(here, SNAPSHOT)
    with pytest.raises(InfraError, match="all workers must share one TIPCFLOW_HOME"):
        kept_snapshot(there, source)
    assert kept_snapshot(there, source.model_copy(update={"mark": ""})) == SNAPSHOT, "resolved by an older version"


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bucket"
    folder.mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{folder}")
    return folder / "suites"


def test_worker_with_a_separate_home_gets_the_snapshot_from_the_store(objects: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    source = keep_snapshot(here, SNAPSHOT)
    assert sorted(path.name for path in objects.iterdir()) == [f"{SHA}.names", f"{SHA}.tar.gz"]
    assert kept_snapshot(there, source) == SNAPSHOT
    for path in objects.iterdir():
        path.unlink()
    assert kept_snapshot(there, source) == SNAPSHOT, "copied once"
    assert kept_names(here, source) == {"a.txt"}


def test_snapshot_that_the_store_lost_or_damaged_is_reported(objects: Path, tmp_path: Path) -> None:
    source = keep_snapshot(tmp_path / "here", SNAPSHOT)
    (objects / f"{SHA}.tar.gz").write_bytes(b"arch")
    with pytest.raises(DamagedObjectError, match=r"tar\.gz in the object store .* is damaged"):
        kept_snapshot(tmp_path / "there", source)
    (objects / f"{SHA}.tar.gz").unlink()
    with pytest.raises(InfraError, match="is neither on this machine nor in the object store"):
        kept_snapshot(tmp_path / "there", source)
    assert kept_snapshot(tmp_path / "there", keep_snapshot(tmp_path / "here", SNAPSHOT)) == SNAPSHOT


def test_old_snapshot_in_use_is_written_again(objects: Path, tmp_path: Path) -> None:
    keep_snapshot(tmp_path, SNAPSHOT)
    archive = objects / f"{SHA}.tar.gz"
    for age_s, is_new in ((9 * 86400, False), (11 * 86400, True)):
        then = archive.stat().st_mtime - age_s
        os.utime(archive, (then, then))
        keep_snapshot(tmp_path, SNAPSHOT)
        assert (archive.stat().st_mtime > then) is is_new


def test_snapshot_needs_the_store_when_a_run_is_resolved(objects: Path, tmp_path: Path) -> None:
    objects.parent.rmdir()
    with pytest.raises(InfraError, match="does not exist on this machine"):
        keep_snapshot(tmp_path, SNAPSHOT)
