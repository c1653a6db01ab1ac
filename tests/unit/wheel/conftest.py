"""The wheel of this clone, and an environment with the base installation."""

from pathlib import Path

import pytest
from tests.support.installed.wheel import build_wheel, install


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the programs of an environment that has `pip install tipcflow` and nothing else."""
    return install(tmp_path_factory.mktemp("base") / "env", [str(wheel)]).parent
