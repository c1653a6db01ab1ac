"""A pull request on the stand-in of GitHub, and everything that handles its deliveries."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.support.github.api import GitHub, serving
from tests.support.github.world import World

from tipcflow.store import Store


@pytest.fixture
def github() -> GitHub:
    return GitHub()


@pytest.fixture
def world(tmp_path: Path, github: GitHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # The client's own repetitions take seconds; here it is the outbox that repeats.
    monkeypatch.setattr(import_module("tipcflow.github.client.connect"), "RETRIES", 1)
    with serving(github) as url, Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        yield World(tmp_path, url, github, store)
