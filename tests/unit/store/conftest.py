import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[2]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from support import postgres  # noqa: E402
from tipcflow.store import Store  # noqa: E402


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    with postgres.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, on each kind of server."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'tipcflow.db'}"
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    url = server.create()
    yield url
    server.drop(url)


@pytest.fixture
def store(empty_url: str) -> Iterator[Store]:
    with Store.open(empty_url) as store:
        yield store


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    """Run several `contend.py` at once; their answers in order."""

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
