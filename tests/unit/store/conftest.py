import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.support import postgres

from tipcflow.store import Store

TESTS = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.process)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, on each kind of server."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'tipcflow.db'}"
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    url = server.create()
    yield url
    server.drop(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def database_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with all tables and no rows: a copy, which is quicker than migrating each time."""
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "tipcflow.db")
        yield f"sqlite:///{tmp_path / 'tipcflow.db'}"
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    url = server.create(request.getfixturevalue("postgres_template"))
    yield url
    server.drop(url)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store.open(database_url, migrate=False) as store:
        yield store


@pytest.fixture
def plan_of(store: Store) -> Callable[[Callable[[], object]], list[str]]:
    """Return SQLite's plan of the last statement that a call executes."""
    statements: list[tuple[str, Any]] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *call: statements.append(call[2:4]))

    def plan(call: Callable[[], object]) -> list[str]:
        call()
        statement, parameters = statements[-1]
        with store.database.read() as connection:
            return [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]

    return plan


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    """Run several `contend.py` at once; return their outputs in order."""

    def run(*command_lines: list[str]) -> list[Any]:
        script = str(TESTS / "support" / "contend.py")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        children = [
            subprocess.Popen([sys.executable, script, *line], text=True, **pipes) for line in command_lines
        ]
        try:
            for child in children:
                assert child.stdout.readline() == '"ready"\n', child.stderr.read()
            for child in children:
                child.stdin.write("go\n")
                child.stdin.flush()
            answers = []
            for child in children:
                out, err = child.communicate(timeout=120)
                assert child.returncode == 0, err
                answers.append(json.loads(out))
            return answers
        finally:
            for child in children:
                child.kill()

    return run
