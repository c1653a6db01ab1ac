"""Two real SSH nodes for the cluster tests."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devcluster.local_nodes.nodes import LocalNodes, local_nodes

ROOT = Path(__file__).resolve().parents[2]
NODE_PYTHON = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    """Nodes a and b, shared by all tests; a test that leaves something on them breaks the next one."""
    with local_nodes(tmp_path_factory.mktemp("home"), python=Path(sys.executable)) as made:
        yield made


@pytest.fixture
def make_nodes(tmp_path: Path) -> Iterator[Callable[..., LocalNodes]]:
    """`make_nodes(names=..., python=..., mode=...)`: a test's own nodes, gone at its end."""
    with ExitStack() as stack:

        def make(home: Path = tmp_path, **settings: object) -> LocalNodes:
            return stack.enter_context(local_nodes(home, **settings))  # type: ignore[arg-type]

        yield make


@pytest.fixture(scope="session")
def node_python() -> Path:
    """The interpreter of the CPU nodes' environment, with Paddle in it."""
    assert NODE_PYTHON.exists(), f"{NODE_PYTHON} is missing: make test makes it"
    return NODE_PYTHON
