"""A backup restored elsewhere, and `down`, which leaves nothing. Runs after most files."""

import shutil
from collections.abc import Iterator

import pytest
from tests.compose.conftest import Timed
from tests.support.compose.deployment import Deployment
from tests.support.compose.engine import KEPT, Engine

BACKUP = "/var/lib/tipcflow/metrics.backup"


@pytest.fixture
def elsewhere(deployment: Deployment, engine: Engine, images: dict[str, str]) -> Iterator[Deployment]:
    """Another deployment with the secrets of the first, and empty databases."""
    folder = KEPT / "elsewhere"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(deployment.folder, folder, symlinks=True)
    made = Deployment(engine, folder, "elsewhere")
    made.configure(**images, NODE_NETWORK="10.213.79")
    made.compose("up", "--detach", "postgres", "redis")
    yield made
    made.compose("down", "--volumes", "--timeout", "5", check=False)


def test_backup_restored_elsewhere_has_the_same_verdicts(
    deployment: Deployment, elsewhere: Deployment, engine: Engine
) -> None:
    before = deployment.verdicts()
    assert before
    deployment.tipcflow("db", "backup", BACKUP)
    copy = KEPT / "metrics.backup"
    engine.run("cp", f"{deployment.containers('worker')[0]}:{BACKUP}", copy)
    deployment.inside("worker", "rm", BACKUP)
    copy.chmod(0o644)
    elsewhere.until_healthy("postgres")
    mounted = ["run", "--rm", "--no-deps", "--volume", f"{copy}:/restored:ro", "worker"]
    elsewhere.compose(*mounted, "tipcflow", "db", "restore", "--replace", "/restored")
    assert elsewhere.verdicts() == before


@pytest.mark.fast
def test_down_leaves_nothing(deployment: Deployment, timed: Timed) -> None:
    with timed("down"):
        deployment.compose("down", "--volumes", "--timeout", "10")
    assert deployment.leftovers() == []
