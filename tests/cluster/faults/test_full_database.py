"""The disk of a PostgreSQL server becomes full in a training; after space is freed, the next command continues."""

import errno
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support import postgres
from tests.support.certify import DEADLINE_S, TIPCFLOW, Site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.root]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 200 MiB, for the files of the server."""
    folder = Path(tempfile.mkdtemp(prefix="tipcflow-disk-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=1777", "tmpfs", folder], check=True)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(folder))
            yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


@pytest.fixture
def server(disk: Path) -> Iterator[postgres.Server]:
    with postgres.running() as running:
        assert running.socket_dir.parent == disk
        yield running


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path, server: postgres.Server) -> Site:
    return Site(tmp_path, nodes, database_url=server.create())


def fill(file: Path, server: postgres.Server) -> None:
    """Fill the disk, just after a new segment of the write-ahead log: without one, the server would stop."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CREATE TABLE after_switch ()")
    with file.open("wb", buffering=0) as full:
        try:
            while True:
                full.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017


def test_run_with_a_full_database_disk_ends_with_a_clear_error(
    site: Site, disk: Path, server: postgres.Server
) -> None:
    filler = disk / "filler"
    broken = site.run_and(lambda: site.training_runs_on("b"), lambda _: fill(filler, server))
    assert broken.code == 5, broken.output
    assert "Traceback" not in broken.output
    assert broken.output.count("No space left on device") == 1, broken.output
    kept = site.home / "unfinished" / f"{broken.run.id}.json"
    assert kept.is_file()
    with site.store() as store:
        assert store.runs.get(broken.run.id).status is None
    assert site.left_behind() == []
    filler.unlink()
    listed = subprocess.run(
        [TIPCFLOW, "runs"], env=site.env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert listed.returncode == 0, listed.stderr
    with site.store() as store:
        assert store.runs.get(broken.run.id).status is Status.INFRA_FAILURE
    assert not kept.exists()
    after = site.run()
    assert after.code == 0, after.output
    assert site.left_behind() == []
