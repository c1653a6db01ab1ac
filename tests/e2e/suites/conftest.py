"""Two nodes with Paddle and the repository's own configuration, for public suites that are at hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import NODE_PYTHON, SUITES, PublicSite

from devcluster.local_nodes.nodes import local_nodes


@pytest.fixture
def public(tmp_path: Path) -> Iterator[PublicSite]:
    if not (SUITES / "models").is_dir():
        pytest.skip("TIPC_SUITES names no folder with clones of the public suites")
    with local_nodes(tmp_path / "nodes", python=NODE_PYTHON) as nodes:
        yield PublicSite(tmp_path, nodes)
