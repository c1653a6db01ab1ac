"""The extra that a command names if a module is missing."""

import tomllib
from pathlib import Path

import pytest

from tipcflow.cli.extras import missing_extra

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        ("runs", "sqlalchemy", "run"),
        ("github", "github", "airflow"),
        ("github", "requests.adapters", "airflow"),
        ("parse", "regex", "analysis"),
        ("demo", "pydantic_settings", "devcluster"),
        ("local", "cryptography", "devcluster"),
        ("airflow", "airflow", "devcluster"),
    ],
)
def test_a_missing_module_names_the_extra_of_the_command(
    command: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["tipcflow", command])
    line = missing_extra(ImportError(name=module))
    assert line == f"tipcflow {command} requires the extra '{extra}': pip install 'tipcflow[{extra}]'"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extra in extras


def test_an_unknown_module_belongs_to_no_extra() -> None:
    assert missing_extra(ImportError(name="tipcflow.nothing")) == ""
