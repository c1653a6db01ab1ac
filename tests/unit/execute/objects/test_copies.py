"""Copies of objects on this machine: checked by hash, fetched once, the oldest removed above the limit."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tipcflow.execute.objects.copies as module
from tipcflow.domain import InfraError
from tipcflow.execute.objects.copies import FOLDER, copied, trim
from tipcflow.execute.objects.object_store import DamagedObjectError, MissingObjectError, ObjectStore

TEXT = b"loss 1.0\n"
SHA256 = hashlib.sha256(TEXT).hexdigest()
DAY_S = 86400.0


@pytest.fixture
def objects(tmp_path: Path) -> ObjectStore:
    (tmp_path / "store" / "a").mkdir(parents=True)
    (tmp_path / "store" / "a" / "main.log").write_bytes(TEXT)
    return ObjectStore(f"file://{tmp_path}/store")


def hashed(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy(objects: ObjectStore, home: Path, **fields: Any) -> Path:
    known = {"sha256": SHA256, "count": len(TEXT), "content_hash": hashed}
    return copied(objects, "a/main.log", home=home, **{**known, **fields})


def files(home: Path) -> list[str]:
    return sorted(path.name for path in (home / FOLDER).rglob("*") if path.is_file())


def test_object_is_fetched_once(objects: ObjectStore, tmp_path: Path) -> None:
    first = copy(objects, tmp_path)
    assert first.read_bytes() == TEXT
    objects.remove(["a/main.log"])
    assert copy(objects, tmp_path) == first
    assert files(tmp_path) == ["main.log"]


def test_object_is_fetched_past_its_copy(objects: ObjectStore, tmp_path: Path) -> None:
    copy(objects, tmp_path).write_bytes(b"changed here")
    assert copy(objects, tmp_path, fresh=True).read_bytes() == TEXT
    objects.remove(["a/main.log"])
    with pytest.raises(MissingObjectError):
        copy(objects, tmp_path, fresh=True)


@pytest.mark.parametrize("content", [TEXT[:-2], b"", b"loss 2.0\n"], ids=["truncated", "empty", "other"])
def test_object_with_another_content_is_damaged(objects: ObjectStore, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "store" / "a" / "main.log").write_bytes(content)
    with pytest.raises(
        DamagedObjectError, match=r"a/main\.log in the object store .* is damaged: its SHA-256 differs"
    ):
        copy(objects, tmp_path)
    assert files(tmp_path) == []


def test_missing_object_leaves_nothing(objects: ObjectStore, tmp_path: Path) -> None:
    objects.remove(["a/main.log"])
    with pytest.raises(MissingObjectError):
        copy(objects, tmp_path)
    assert files(tmp_path) == []


def test_home_that_cannot_be_written_is_reported(objects: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / FOLDER).write_text("a file, not a folder")
    with pytest.raises(InfraError, match="TIPCFLOW_HOME must be writable"):
        copy(objects, tmp_path / "home")


def test_copies_that_were_not_used_for_long_are_removed_first(tmp_path: Path) -> None:
    now = time.time()
    for number in range(5):
        path = tmp_path / FOLDER / f"{number}" / "main.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (now, now - 3600 + number))
    assert trim(tmp_path, limit=250) == 3
    assert sorted(path.parent.name for path in (tmp_path / FOLDER).glob("*/main.log")) == ["3", "4"]
    assert trim(tmp_path, limit=0, now=now - 3600 + 10) == 0, "used within the last minute"
    assert trim(tmp_path, limit=0, now=now + 2 * DAY_S) == 2
    assert list((tmp_path / FOLDER).iterdir()) == [], "empty folders are removed after a day"


def test_files_of_interrupted_transfers_are_removed_after_a_day(tmp_path: Path) -> None:
    aside = tmp_path / FOLDER / "out" / ".part"
    aside.parent.mkdir(parents=True)
    aside.write_bytes(b"x" * 100)
    assert trim(tmp_path, limit=0) == 0
    assert trim(tmp_path, limit=10**9, now=time.time() + 2 * DAY_S) == 1


def test_limit_applies_to_the_number_of_copies(tmp_path: Path) -> None:
    now = time.time()
    for number in range(5):
        path = tmp_path / FOLDER / f"{number}" / "main.log"
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (now, now - 3600 + number))
    assert trim(tmp_path, limit=10**9, most=2) == 3
    assert sorted(path.parent.name for path in (tmp_path / FOLDER).glob("*/main.log")) == ["3", "4"]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Waits for the searches for old copies of this process; returns their number."""
    module._trimmer.cache_clear()
    began: list[Path] = []
    trim = module.trim
    monkeypatch.setattr(module, "trim", lambda home, **fields: began.append(home) or trim(home, **fields))

    def wait() -> int:
        for thread in threading.enumerate():
            if thread.name == "old copies":
                thread.join()
        return len(began)

    yield wait
    wait()


def test_limit_of_the_settings_applies_to_every_copy(
    objects: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: Callable[[], int]
) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE_CACHE_MB", "1")
    old = tmp_path / FOLDER / "0" / "old.log"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"x" * 1_000_000)
    os.utime(old, (1, 1))
    copy(objects, tmp_path)
    assert searches() == 1
    assert files(tmp_path) == ["main.log"]


def test_copies_are_searched_once_a_minute_or_after_many_bytes(
    objects: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: Callable[[], int]
) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE_CACHE_MB", "1")

    def copy_again(count: int) -> int:
        (tmp_path / "store" / "a" / "main.log").write_bytes(b"x" * count)
        copy(objects, tmp_path, sha256=hashlib.sha256(b"x" * count).hexdigest(), count=count)
        return searches()

    assert [copy_again(count) for count in (1, 2, 3)] == [1, 1, 1]
    assert copy_again(100_000) == 2, "a tenth of the limit"
    assert copy_again(4) == 2
    later = time.monotonic() + module.EVERY_S
    monkeypatch.setattr(module.time, "monotonic", lambda: later)
    assert copy_again(5) == 3


def test_copy_does_not_wait_for_a_search(
    objects: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module._trimmer.cache_clear()
    may_end = threading.Event()
    monkeypatch.setattr(module, "trim", lambda *_, **__: may_end.wait())
    try:
        assert copy(objects, tmp_path).read_bytes() == TEXT
    finally:
        may_end.set()
