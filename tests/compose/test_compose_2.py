"""docker-compose.yaml with version 2 of docker-compose: the end of `up --wait` means ready."""

import shutil
from collections.abc import Iterator

import pytest
from tests.compose.conftest import Timed
from tests.support.compose import versions
from tests.support.compose.deployment import Deployment
from tests.support.compose.engine import KEPT, Engine
from tests.support.programs import missing as is_missing


@pytest.fixture
def second(engine: Engine, images: dict[str, str]) -> Iterator[Deployment]:
    """A deployment that is built, and not up."""
    program = versions.command_of_version_2()
    if not program:
        is_missing("no Compose of version 2: neither docker compose nor COMPOSE=PROGRAM")
    folder = KEPT / "compose-2"
    shutil.rmtree(folder, ignore_errors=True)
    made = Deployment(engine, folder, "compose2")
    made.program = program
    made.checkout()
    made.configure(**images, APT_PACKAGES="unzip", NODE_NETWORK="10.213.80")
    made.compose("build", timeout=1100)
    yield made
    made.compose("down", "--volumes", "--timeout", "10", check=False)


def test_end_of_up_wait_means_ready(second: Deployment, timed: Timed) -> None:
    version = versions.version(second.program)
    with timed(f"up --wait of compose {version}"):
        second.up("--wait")
    health = {container: second.health(container) for container in second.containers()}
    (init,) = second.containers("init")
    assert health.pop(init) == "exited"
    assert set(health.values()) == {"healthy"}
    run = second.certify()
    assert second.training_attempts(run) == 1
    second.compose("down", "--volumes", "--timeout", "10")
    assert second.leftovers() == []
