"""The copy in which a backup of an older schema is upgraded: its place, and a disk without space for it."""

import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.stories import record_run

from tipcflow.domain import InfraError
from tipcflow.store import Store, migrate
from tipcflow.store.backup.restore import copied, restore
from tipcflow.store.backup.save import save


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A backup of an older schema."""
    url = f"sqlite:///{tmp_path / 'made.db'}"
    with Store.open(url) as store:
        record_run(store)
    migrate.downgrade(url, "0007")
    (tmp_path / "backups").mkdir()
    save(url, tmp_path / "backups" / "older")
    return tmp_path / "backups" / "older"


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file that this process writes becomes larger, in bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_copy_beside_the_backup_requires_no_temporary_folder(
    older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert restore(f"sqlite:///{tmp_path / 'new.db'}", older).revision == "0007"
    assert list(older.parent.iterdir()) == [older]


def test_disk_without_space_for_the_copy_is_named(
    older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # Not `restore`, which opens the database first: on a full disk that fails, too.
    with largest_file(20_000), pytest.raises(InfraError) as caught, copied(older):
        pytest.fail("copied")
    assert f"{older.parent}: " in caught.value.message
    assert f"; {tmp_path}: " in caught.value.message
    assert "TMPDIR" in caught.value.hint
    assert list(older.parent.iterdir()) == [older]
