import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tipcflow.cli import main
from tipcflow.store import Store


class CliResult(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own TIPCFLOW_HOME, with its SQLite database."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    monkeypatch.delenv("TIPCFLOW_CONFIG_DIR", raising=False)
    return tmp_path / "home"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without runs, made once: the migrations take longer than most tests."""
    file = tmp_path_factory.mktemp("database") / "tipcflow.db"
    with Store.open(f"sqlite:///{file}"):
        pass
    return file


@pytest.fixture
def database(home: Path, empty_database: Path) -> Path:
    """The home's database, without runs."""
    home.mkdir(exist_ok=True)
    return Path(shutil.copy(empty_database, home / "tipcflow.db"))


@pytest.fixture
def tipcflow(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., CliResult]:
    """Run the command line in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> CliResult:
        monkeypatch.setattr("sys.argv", ["tipcflow", *arguments])
        code = 0
        try:
            main.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        out, err = capfdbinary.readouterr()
        return CliResult(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    return run
