"""The extra that a command names if a module is missing."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tipcflow.cli.commands.table import COMMANDS
from tipcflow.cli.extras import MODULES, missing_extra

ROOT = Path(__file__).parents[4]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DISTRIBUTIONS = packages_distributions()
OURS = {"tipcflow", "devcluster", "tipcflow_operators", "tipcflow_pages"}
# Module of a requirement of a requirement -> the module of the latter.
PARTS = {
    "markupsafe": "jinja2",
    "pydantic_core": "pydantic",
    "starlette": "fastapi",
    "structlog": "airflow",
    "werkzeug": "airflow",
}


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [
        ("runs", "sqlalchemy", "run"),
        ("history", "pandas", "run,analysis"),
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


def test_an_unknown_module_belongs_to_no_extra() -> None:
    assert missing_extra(ImportError(name="tipcflow.nothing")) == ""


def test_commands_declare_existing_extras() -> None:
    assert {extra for command in COMMANDS for extra in command.extra.split(",")} <= {"", *EXTRAS}


@pytest.mark.slow
def test_modules_match_the_packages_of_the_extras() -> None:
    base, extras = names(PROJECT["dependencies"]), set().union(*(names(extra) for extra in EXTRAS.values()))
    imported = {PARTS.get(module, module) for module in third_party()}
    assert imported - base_modules(base) - MODULES == set()
    declared = {module for module in MODULES if distributions(module) & extras}
    assert declared == MODULES


def test_documentation_lists_the_extras_and_their_commands() -> None:
    text = (ROOT / "docs/tutorial/existing-airflow.md").read_text()
    rows = dict(re.findall(r"^\| `tipcflow(?:\[(\w+)\])?` \|(.+)$", text, re.M))
    assert set(rows) == {"", *EXTRAS}
    special = {command.name: command.extra for command in COMMANDS if command.extra not in ("run", "devcluster")}
    for name, extra in special.items():
        assert f"`{name}`" in rows[extra.rpartition(",")[2]] or f"`tipcflow {name}`" in rows[extra]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[>=\[]", requirement)[0].lower().replace("_", "-") for requirement in requirements}


def base_modules(base: set[str]) -> set[str]:
    return {module for module in DISTRIBUTIONS if distributions(module) & base}


def distributions(module: str) -> set[str]:
    return {name.lower().replace("_", "-") for name in DISTRIBUTIONS.get(module, ())}


def third_party() -> set[str]:
    """Top-level modules that the product imports, also inside functions."""
    files = [
        file
        for folder in ("src/tipcflow", "operators", "plugins")
        for file in (ROOT / folder).rglob("*.py")
        if "runner" not in file.parts
    ]
    return {
        module
        for file in files
        for module in imports(file)
        if module not in OURS and module not in sys.stdlib_module_names
    }


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
