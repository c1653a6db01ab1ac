import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.store import Store


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def store(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The metrics database of the settings."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    shutil.copy(template, tmp_path / "tipcflow.db")
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}", migrate=False) as store:
        yield store
