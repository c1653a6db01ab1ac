"""SQLite on a shared file system is refused: two machines would damage the file."""

from pathlib import Path

import pytest

from tipcflow.domain import ConfigError
from tipcflow.store import engine
from tipcflow.store.engine import file_system, make_engine

MOUNTS = """\
overlay / overlay rw 0 0
server:/export /mnt nfs4 rw,vers=4.2 0 0
/dev/sda1 /mnt/local\\040disk ext4 rw 0 0
tmpfs /mnt/over tmpfs rw 0 0
server:/other /mnt/over nfs rw 0 0
JuiceFS:data /mnt/data fuse.juicefs rw,relatime,default_permissions,allow_other 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/x", "overlay"),
        ("/mnt", "nfs4"),
        ("/mnt/home", "nfs4"),
        ("/mnt2", "overlay"),
        ("/mnt/local disk/x", "ext4"),
        ("/mnt/over", "nfs"),
        ("/mnt/data/home", "fuse.juicefs"),
    ],
)
def test_the_file_system_of_a_folder_is_found(tmp_path: Path, folder: str, kind: str) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert file_system(Path(folder), tmp_path / "mounts") == kind
    assert file_system(Path(folder), tmp_path / "none") == ""


def test_sqlite_on_a_shared_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = file_system(tmp_path.resolve())
    assert here, "this machine's own file system"
    make_engine(f"sqlite:///{tmp_path / 'x.db'}").dispose()
    monkeypatch.setattr(engine, "NETWORK", frozenset({here}))
    with pytest.raises(ConfigError, match=rf"on a shared file system.*found '{here}'.*postgresql://"):
        make_engine(f"sqlite:///{tmp_path / 'x.db'}")


@pytest.mark.parametrize("exists", [True, False])
def test_symbolic_link_to_a_shared_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    shared = tmp_path / "shared" / "x.db"
    shared.parent.mkdir()
    if exists:
        shared.touch()
    (tmp_path / "x.db").symlink_to(shared)
    (tmp_path / "mounts").write_text(f"tmpfs / tmpfs rw 0 0\nserver:/x {shared.parent.resolve()} nfs4 rw 0 0\n")
    found = engine.file_system
    monkeypatch.setattr(engine, "file_system", lambda path: found(path, tmp_path / "mounts"))
    with pytest.raises(ConfigError, match="found 'nfs4'"):
        make_engine(f"sqlite:///{tmp_path / 'x.db'}")


SHARED = ["nfs4", "cifs", "lustre", "fuse.sshfs", "fuse.ceph-fuse", "fuse.juicefs", "fuse.s3fs", "9p", "virtiofs"]


@pytest.mark.parametrize("kind", SHARED)
def test_file_systems_of_several_machines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(engine, "file_system", lambda _: kind)
    with pytest.raises(ConfigError, match=f"found '{kind}'"):
        make_engine(f"sqlite:///{tmp_path / 'x.db'}")


@pytest.mark.parametrize("kind", ["ext4", "overlay", "tmpfs", "fuse.fuse-overlayfs", "fuseblk", ""])
def test_file_systems_of_one_machine_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(engine, "file_system", lambda _: kind)
    make_engine(f"sqlite:///{tmp_path / 'x.db'}").dispose()
