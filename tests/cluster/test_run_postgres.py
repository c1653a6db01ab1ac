"""`tipcflow run` with its database in PostgreSQL, by URL, as a team shares one."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.support import postgres
from tests.support.certify import Site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.store.schema import metadata

pytestmark = [pytest.mark.cluster, pytest.mark.full]


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Iterator[Site]:
    with postgres.running() as server:
        yield Site(tmp_path, nodes, database_url=server.create())


def test_two_runs_in_postgresql(site: Site) -> None:
    first = site.run()
    assert first.code == 0, first.output
    assert not (site.home / "tipcflow.db").exists()
    second = site.run()
    assert second.code == 0, second.output
    assert f"equal those of run {first.run.id}" in second.output
    with site.store() as store:
        assert len(store.measurements.of(second.run.id, metric="loss")) == 4 * 10
    assert site.left_behind() == []


def test_password_of_the_database_is_stored_nowhere(site: Site) -> None:
    word = f"planted{secrets.token_hex(8)}"
    site.database_url = site.database_url.replace("tipcflow@", f"tipcflow:{word}@")
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    done = site.run()
    assert done.code == 1, done.output
    assert word not in done.output
    folders = (site.home, site.nodes.folder)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if word.encode() in path.read_bytes()] == []
    with site.store() as store, store.database.read() as connection:
        for table in metadata.sorted_tables:
            assert not [row for row in connection.execute(select(table)) if word in repr(tuple(row))], table.name
