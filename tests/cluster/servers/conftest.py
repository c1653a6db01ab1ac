"""A user's installation with the shipped suite for parameter servers, on nodes with Paddle 2.6.2."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.samples.site import HOME, mark_tests_below, needs_environment, nodes_on_demand, sample_site

from devcluster.local_nodes.nodes import LocalNodes

PYTHON = HOME / "envs" / "node-ps" / "bin" / "python"
NEEDS_SERVERS = needs_environment("node-ps", "no .tipcflow/envs/node-ps: make test-full makes it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder: they take minutes, and need the environment."""
    mark_tests_below(Path(__file__).parent, items, NEEDS_SERVERS)


@pytest.fixture(scope="module")
def server_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], LocalNodes]]:
    """Nodes a and b with Paddle 2.6.2, started when a test needs them."""
    with nodes_on_demand(tmp_path_factory.mktemp("nodes"), PYTHON) as nodes:
        yield nodes


@pytest.fixture
def site(server_nodes: Callable[[], LocalNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> certify.Site:
    """An installation whose suite `parameter_server` is a copy of the shipped one."""
    monkeypatch.setattr(certify, "DEADLINE_S", 800)
    return sample_site(tmp_path, server_nodes(), "parameter_server")
