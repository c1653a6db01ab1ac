"""One deployment of docker-compose.yaml for all tests of this folder; ends with everything removed."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.support.compose.deployment import LAB_CONNECTION, SCALE, Deployment
from tests.support.compose.engine import KEPT, Engine, compose_engine, missing
from tests.support.programs import missing as is_missing

# Later files change more of the deployment, and the last ones remove it.
_ORDER = (
    "test_deployment",
    "test_secrets",
    "test_rotation",
    "test_operations",
    "test_traces",
    "test_other_machine",
    "test_lifecycle",
    "test_compose_2",
    "test_upgrade",
)
_TIMES: list[tuple[str, float]] = []
Timed = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str, float], None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.full)
        item.add_marker(pytest.mark.timeout(1500))
    items.sort(key=lambda item: _ORDER.index(Path(item.path).stem))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for what, seconds in _TIMES:
        terminalreporter.write_line(f"{seconds:6.0f} s  {what}")


def _note(what: str, seconds: float) -> None:
    _TIMES.append((what, seconds))


@contextmanager
def _timed(what: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    _note(what, time.monotonic() - start)


@pytest.fixture(scope="session")
def timed() -> Timed:
    """Measures a block for the end of the output."""
    return _timed


@pytest.fixture(scope="session")
def note() -> Note:
    """Keeps a duration for the end of the output."""
    return _note


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    if why := missing():
        is_missing(why)
    with compose_engine() as running:
        yield running


@pytest.fixture(scope="session")
def images(engine: Engine) -> dict[str, str]:
    """Base images by their variables."""
    with _timed("base images"):
        return engine.images()


@pytest.fixture(scope="session")
def deployment(request: pytest.FixtureRequest, engine: Engine, images: dict[str, str]) -> Iterator[Deployment]:
    """The deployment; `up` has just returned.

    With two workers, and for the whole folder also two schedulers and two triggerers.
    """
    folder = KEPT / "checkout"
    shutil.rmtree(folder, ignore_errors=True)
    made = Deployment(engine, folder, "e2e")
    made.checkout()
    # Installed in the base image: apt-get needs no network.
    made.configure(**images, APT_PACKAGES="unzip", JSON_LOGS="True")
    with _timed("build"):
        made.compose("build", timeout=1100)
    is_fast = all(item.get_closest_marker("fast") for item in request.session.items)
    # Of tests that were killed: their volumes have other passwords.
    made.compose("down", "--volumes", "--timeout", "10", check=False)
    try:
        with _timed("up, until compose ends"):
            made.up(scale={"worker": 2} if is_fast else SCALE)
        yield made
    finally:
        (KEPT / "containers.log").write_text(made.compose("logs", "--no-color", "--timestamps", check=False))
        made.compose("down", "--volumes", "--timeout", "10", timeout=300, check=False)


@pytest.fixture(scope="module")
def lab(deployment: Deployment) -> Deployment:
    """The deployment with connections of the nodes in Airflow's database."""
    deployment.add_connections(*(f"{LAB_CONNECTION}{number}" for number in (1, 2)))
    return deployment
