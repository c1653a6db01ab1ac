import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tipcflow.config.repository import Repositories, Repository

TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def payloads() -> dict[str, list[dict[str, Any]]]:
    """GitHub's example payloads by event."""
    packed = (TESTS / "golden" / "github" / "webhooks-examples.json.xz").read_bytes()
    found: dict[str, list[dict[str, Any]]] = json.loads(lzma.decompress(packed))
    return found


@pytest.fixture
def repository() -> Repository:
    return Repository(
        name="Codertocat/Hello-World", connection="app", suite="toy", cluster="two", branches=("master", "main")
    )


@pytest.fixture
def repositories(repository: Repository) -> Repositories:
    return Repositories({"hello": repository})
