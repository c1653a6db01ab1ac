"""One deployment of docker-compose.yaml for all tests of this folder; ends with everything removed."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from tests.support.compose.deployment import SCALE, Deployment
from tests.support.compose.engine import KEPT, Engine, compose_engine, missing
from tests.support.programs import missing as is_missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.full)
        item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    if why := missing():
        is_missing(why)
    with compose_engine() as running:
        yield running


@pytest.fixture(scope="session")
def images(engine: Engine) -> dict[str, str]:
    """Base images by their variables."""
    return engine.images()


@pytest.fixture(scope="session")
def deployment(engine: Engine, images: dict[str, str]) -> Iterator[Deployment]:
    """The deployment, with two workers, schedulers and triggerers; `up` has just returned."""
    folder = KEPT / "checkout"
    shutil.rmtree(folder, ignore_errors=True)
    made = Deployment(engine, folder, "e2e")
    made.checkout()
    # Installed in the base image: apt-get needs no network.
    made.configure(**images, APT_PACKAGES="unzip", JSON_LOGS="True")
    made.compose("build", timeout=1100)
    try:
        made.up(**SCALE)
        yield made
    finally:
        logs = subprocess.run(
            ["docker-compose", "--project-name", "e2e", "--profile", "demo", "logs", "--no-color", "--timestamps"],
            cwd=folder, env=engine.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        (KEPT / "containers.log").write_text(logs.stdout)
        made.compose("down", "--volumes", "--timeout", "10", timeout=300, check=False)
