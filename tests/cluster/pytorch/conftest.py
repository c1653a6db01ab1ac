"""A user's installation with the shipped PyTorch suite, on nodes whose environment has PyTorch."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.samples.site import HOME, mark_tests_below, needs_environment, nodes_on_demand, sample_site

from devcluster.local_nodes.nodes import LocalNodes

PYTHON = HOME / "envs" / "node-torch" / "bin" / "python"
SUITE = certify.ROOT / "examples" / "pytorch_multinode"
NEEDS_TORCH = needs_environment("node-torch", "no .tipcflow/envs/node-torch: tools/node_torch.sh makes it")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder: they take minutes, and need the environment."""
    mark_tests_below(Path(__file__).parent, items, NEEDS_TORCH)


@pytest.fixture(scope="module")
def torch_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], LocalNodes]]:
    """Nodes a and b with PyTorch, started when a test needs them."""
    with nodes_on_demand(tmp_path_factory.mktemp("nodes"), PYTHON) as nodes:
        yield nodes


@pytest.fixture
def site(torch_nodes: Callable[[], LocalNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> certify.Site:
    """An installation whose suite `pytorch_multinode` is a copy of the shipped one."""
    monkeypatch.setattr(certify, "DEADLINE_S", 800)
    return sample_site(tmp_path, torch_nodes(), "pytorch_multinode")
