"""`--csv` of the commands that list something."""

import csv
import io
from collections.abc import Callable

import pytest
from tests.unit.cli.conftest import CliResult

from tipcflow.cli.output.records import print_records

COMMANDS = [["suites"], ["quarantine", "list"], ["status"], ["doctor"]]


def test_records_have_one_column_per_field(capsys: pytest.CaptureFixture[str]) -> None:
    print_records([{"a": 1, "b": ["x", "y"]}, {"a": None, "c": {"k": [1]}, "b": [{"d": 2}]}])
    out = capsys.readouterr().out
    assert list(csv.reader(io.StringIO(out))) == [
        ["a", "b", "c"],
        ["1", "x; y", ""],
        ["", '[{"d":2}]', '{"k":[1]}'],
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_list_is_available_as_csv(tipcflow: Callable[..., CliResult], command: list[str]) -> None:
    result = tipcflow(*command, "--csv")
    rows = list(csv.reader(io.StringIO(result.out)))
    assert len({len(row) for row in rows}) <= 1, result.err
    if command in (["suites"], ["doctor"]):
        assert len(rows) > 3


@pytest.mark.parametrize(
    "command", [*COMMANDS, ["nodes"], ["gate", "latest"], ["baseline", "show", "latest"]], ids=" ".join
)
def test_two_formats_are_refused(tipcflow: Callable[..., CliResult], command: list[str]) -> None:
    result = tipcflow(*command, "--csv", "--json")
    assert (result.code, result.out) == (2, "")
    assert "give either --json or --csv" in result.err
