"""Metrics databases of unit tests: copies of one that the migrations made, because they take 0.1 s each. Property
tests without deadlines: the duration of an example has no meaning on a busy machine."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings
from tests.support import postgres

from tipcflow.store import Store, migrate
from tipcflow.store.engine import normal_url

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

STORE = Path(__file__).parent / "store"


class Template:
    """An empty SQLite database with the newest schema, made when the first test needs it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "metrics.db"

    def copy_to(self, made: sqlite3.Connection, upgrade: Callable[[str], str]) -> None:
        """Fill an empty database."""
        if not self._path.exists():
            upgrade(f"sqlite:///{self._path}")
        with closing(sqlite3.connect(self._path)) as source:
            source.backup(made)


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """The template of this process."""
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """A server of this process, started by the first test that needs it."""
    with postgres.running() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.Server) -> str:
    """Name of a database with all tables and no rows."""
    url = postgres_server.create()
    Store.open(url).close()
    return postgres.name_of(url)


@pytest.fixture
def postgres_url(postgres_server: postgres.Server, postgres_template: str) -> Iterator[str]:
    """A database with all tables and no rows."""
    url = postgres_server.create(postgres_template)
    yield url
    postgres_server.drop(url)


@pytest.fixture(autouse=True)
def quick_upgrade(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, migrated_database: Template
) -> None:
    """Fill new SQLite databases by a copy; tests of the store itself run the migrations."""
    if not request.path.is_relative_to(STORE):
        monkeypatch.setattr(migrate, "upgrade", _copying(migrate.upgrade, migrated_database))


def _copying(upgrade: Callable[[str], str], template: Template) -> Callable[[str], str]:
    def upgrade_quickly(url: str) -> str:
        parsed = normal_url(url)
        path = parsed.database if parsed.get_backend_name() == "sqlite" else None
        if path in (None, "", ":memory:"):
            return upgrade(url)
        with closing(sqlite3.connect(path)) as made:
            if made.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return upgrade(url)
            template.copy_to(made, upgrade)
        return ""

    return upgrade_quickly
