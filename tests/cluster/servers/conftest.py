"""A user's installation with the shipped suite for parameter servers, on nodes with Paddle 2.6.2."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from tests.support import certify

from devcluster.install.environment import is_ready
from devcluster.local_nodes.nodes import LocalNodes, local_nodes

HOME = certify.ROOT / ".tipcflow"
PYTHON = HOME / "envs" / "node-ps" / "bin" / "python"
SUITE = certify.ROOT / "examples" / "parameter_server"
NEEDS_SERVERS = pytest.mark.skipif(
    not is_ready(HOME, "node-ps"), reason="no .tipcflow/envs/node-ps: make test-full makes it"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder: they take minutes, and need the environment."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for mark in (pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900), NEEDS_SERVERS):
                item.add_marker(mark)


@pytest.fixture(scope="module")
def server_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], LocalNodes]]:
    """Nodes a and b with Paddle 2.6.2, started when a test needs them."""
    with ExitStack() as stack:
        made: list[LocalNodes] = []

        def nodes() -> LocalNodes:
            if not made:
                made.append(stack.enter_context(local_nodes(tmp_path_factory.mktemp("nodes"), python=PYTHON)))
            return made[0]

        yield nodes


@pytest.fixture
def site(server_nodes: Callable[[], LocalNodes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> certify.Site:
    """An installation whose suite `parameter_server` is a copy of the shipped one."""
    monkeypatch.setattr(certify, "DEADLINE_S", 800)
    made = certify.Site(tmp_path, server_nodes())
    shutil.rmtree(made.suite)
    shutil.copytree(SUITE, made.suite, ignore=shutil.ignore_patterns("output", "__pycache__"))
    shutil.copytree(certify.ROOT / "configs" / "dialects", made.configs / "dialects")
    content = yaml.safe_load((certify.ROOT / "configs" / "suites" / "parameter_server.yaml").read_text())
    content["folder"] = str(made.suite)
    (made.configs / "suites" / "parameter_server.yaml").write_text(yaml.safe_dump(content))
    return made
