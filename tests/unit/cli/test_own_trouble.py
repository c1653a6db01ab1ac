"""Trouble of the controller's own disk and database: one line on stderr, exit code 2."""

import sqlite3

import pytest
from sqlalchemy.exc import OperationalError

from tipcflow.cli import main


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OperationalError("insert", {}, sqlite3.OperationalError("database or disk is full")), "disk is full"),
        (
            OperationalError("insert", {}, sqlite3.OperationalError("attempt to write a readonly database")),
            "readonly",
        ),
        (OSError(28, "No space left on device", "/home/runs"), "No space left on device (/home/runs)"),
    ],
)
def test_controller_trouble_is_a_single_line_and_exit_code_5(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise error

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 5
    result = capsys.readouterr().err
    assert result.startswith("infra_failure: ")
    assert words in result
    assert len(result.splitlines()) == 1


def test_defect_of_tipcflow_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def app() -> None:
        raise KeyError("x")

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(KeyError):
        main.main()
