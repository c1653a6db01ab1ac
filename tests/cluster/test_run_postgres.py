"""`tipcflow run` with its database in PostgreSQL, by URL, as a team shares one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import postgres
from tests.support.certify import Site

from devcluster.local_nodes.nodes import LocalNodes

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
