"""`tipcflow --help` and the help of each command: groups, an example that works, few imports."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer
from tests.unit.cli.conftest import CliResult
from typer.main import get_command

from tipcflow.cli.commands.table import COMMANDS
from tipcflow.cli.main import app

GROUP: Any = get_command(app)
EXAMPLES = {entry.name: entry.example for entry in COMMANDS} | {
    f"{entry.name} {name}": example for entry in COMMANDS for name, example in entry.examples.items()
}


def leaves() -> Iterator[tuple[str, Any]]:
    for name in GROUP.commands:
        command = GROUP.commands[name]
        yield name, command
        for child, subcommand in getattr(command, "commands", {}).items():
            yield f"{name} {child}", subcommand


def test_usage_names_arguments_in_capital_letters() -> None:
    usages = {name: command.collect_usage_pieces(typer.Context(command)) for name, command in leaves()}
    wrong = {name: pieces for name, pieces in usages.items() if re.search(r"[{}]|\b[a-z]+\b", " ".join(pieces))}
    assert not wrong
    shown = {name: " ".join(usages[name][1:]) for name in ("run", "logs", "lint", "compare", "dialect check")}
    assert shown == {
        "run": "PARAMS",
        "logs": "RUN [STEP]",
        "lint": "[PATH]...",
        "compare": "A B [C]",
        "dialect check": "DIALECT [PARAMS]...",
    }


def test_missing_argument_has_the_name_of_the_usage_line(tipcflow: Callable[..., CliResult]) -> None:
    result = tipcflow("run")
    assert "run [OPTIONS] PARAMS\n" in result.err
    assert "Missing argument 'PARAMS'" in result.err


def test_help_imports_neither_commands_nor_pydantic() -> None:
    code = (
        "import sys; sys.argv = ['tipcflow', '--help']\n"
        "from tipcflow.entry import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    modules = set(ended.stderr.split())
    assert "tipcflow.cli.commands.table" in modules
    slow = {"rich", "pydantic", "sqlalchemy", "yaml", "numpy", "tipcflow.domain", "tipcflow.cli.run"}
    assert not modules & slow


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_has_groups_and_fits_80_columns(
    flag: str, tipcflow: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = tipcflow(flag)
    assert result.code == 0
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")] == [
        "Options",
        "Set up",
        "Run",
        "Inspect results",
        "Judge",
        "Administer",
    ]
    for entry in COMMANDS:
        (line,) = (line for line in lines if line.startswith(f"  {entry.name} "))
        assert entry.summary in line, "one line per command"
    assert "<bool>" not in result.out


@pytest.mark.parametrize("name", [name for name, _ in leaves()])
def test_help_of_every_command_has_an_example(name: str, tipcflow: Callable[..., CliResult]) -> None:
    result = tipcflow(*name.split(), "-h")
    assert result.code == 0
    assert "<bool>" not in result.out
    printed = " ".join(result.out.split())
    assert f"Example: {' '.join(EXAMPLES[name].split())}" in printed
    assert EXAMPLES[name].split()[: len(name.split()) + 1] == ["tipcflow", *name.split()] or "commands" in vars(
        dict(leaves())[name]
    )


@pytest.mark.parametrize("example", EXAMPLES.values())
def test_examples_are_valid_command_lines(example: str) -> None:
    program, *words = shlex.split(example)
    assert program == "tipcflow"
    context, command = None, GROUP
    while getattr(command, "commands", None) and words and words[0] in command.commands:
        context = command.make_context("tipcflow", [], parent=context, resilient_parsing=True)
        command, words = command.commands[words[0]], words[1:]
    made = command.make_context("x", list(words), parent=context)
    assert not made.args


def test_the_module_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "tipcflow", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.startswith("tipcflow ")


def test_a_misspelled_command_names_the_nearest(tipcflow: Callable[..., CliResult]) -> None:
    result = tipcflow("histroy")
    assert result.code == 2
    assert "Did you mean 'history'" in result.err
