"""`tipcflow access`: the roles file is checked before Airflow is imported."""

from pathlib import Path
from typing import Any

import pytest

from tipcflow.cli.access import command

FILE = """
users:
  root: {roles: [admin], password_env: ROOT_PASSWORD}
  ci: {roles: [ci, viewer], password_file: ci_password}
  bob: {roles: [viewer]}
"""


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "roles.yaml"
    path.write_text(FILE)
    (tmp_path / "ci_password").write_text("a-long-password\n")
    monkeypatch.setenv("TIPCFLOW_ROLES", str(path))
    monkeypatch.setenv("ROOT_PASSWORD", "another-long-password")
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Commands that would be started."""
    commands: list[Any] = []

    def run(words: list[str], *, env: dict[str, str], **_: Any) -> Any:
        commands.append((words[1:], env["AIRFLOW__LOGGING__LOGGING_LEVEL"]))
        return type("Done", (), {"returncode": 5})

    monkeypatch.setattr(command.subprocess, "run", run)
    return commands


def test_the_list_has_no_passwords(tipcflow: Any, roles: Path) -> None:
    result = tipcflow("access", "list")
    assert result.code == 0, result.err
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[1:] == [
        ["bob", "viewer", "none:", "LDAP", "or", "OAuth"],
        ["ci", "ci,", "viewer", "file", "ci_password"],
        ["root", "admin", "variable", "ROOT_PASSWORD"],
    ]


def test_apply_starts_a_process_with_airflow(tipcflow: Any, roles: Path, started: list[Any]) -> None:
    assert tipcflow("access", "apply").code == 5
    assert started == [(["-m", "tipcflow_operators.access.command", str(roles)], "ERROR")]


@pytest.mark.parametrize("name", ["apply", "list"])
def test_a_missing_password_is_reported_first(
    tipcflow: Any, roles: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("ROOT_PASSWORD")
    result = tipcflow("access", name)
    assert result.code == 2
    assert "users.root: the password in ROOT_PASSWORD has 0 characters; expected at least 12" in result.err
    assert started == []


def test_the_file_must_be_named(tipcflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIPCFLOW_ROLES", raising=False)
    result = tipcflow("access", "apply")
    assert (result.code, "TIPCFLOW_ROLES: is not set" in result.err) == (2, True), result.err
