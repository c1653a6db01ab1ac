from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        yield store
