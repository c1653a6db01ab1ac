"""Two real SSH nodes for the cluster tests."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devcluster.local_nodes.nodes import LocalNodes, local_nodes

ROOT = Path(__file__).resolve().parents[2]
NODE_PYTHON = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store whether a test failed, for `nodes`."""
    report = yield
    item.stash[_FAILED] = report.failed or item.stash.get(_FAILED, False)
    return report


class SharedNodes:
    """Nodes a and b, started when a test needs them."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory
        self._running = ExitStack()
        self._made: LocalNodes | None = None

    def started(self) -> LocalNodes:
        """Return the running nodes."""
        if self._made is None:
            home = self._folders.mktemp("home")
            self._made = self._running.enter_context(local_nodes(home, python=Path(sys.executable)))
        return self._made

    def close(self) -> None:
        """Stop the nodes; the next test gets new ones."""
        self._made = None
        self._running.close()


@pytest.fixture(scope="session")
def shared_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedNodes]:
    shared = SharedNodes(tmp_path_factory)
    yield shared
    shared.close()


@pytest.fixture
def nodes(shared_nodes: SharedNodes, request: pytest.FixtureRequest) -> Iterator[LocalNodes]:
    """Nodes a and b, shared by all tests until one fails; after a failure the next test gets new nodes."""
    yield shared_nodes.started()
    if request.node.stash.get(_FAILED, False):
        shared_nodes.close()


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
