"""Two nodes with Paddle and the repository's own configuration, for public suites that are at hand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.suites.public_site import NODE_PYTHON, SUITES, PublicSite

from devcluster.local_nodes.nodes import LocalNodes, local_nodes


@pytest.fixture(scope="session")
def public_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    """Two nodes of all tests, so that the packages of a suite are installed once."""
    if not (SUITES / "models").is_dir():
        pytest.skip("TIPC_SUITES names no folder with clones of the public suites")
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=NODE_PYTHON) as nodes:
        yield nodes


@pytest.fixture
def public(public_nodes: LocalNodes, tmp_path: Path) -> PublicSite:
    return PublicSite(tmp_path, public_nodes)
