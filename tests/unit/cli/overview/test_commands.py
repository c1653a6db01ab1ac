"""`tipcflow today`, `coverage` and `flaky`, as their users read them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run

from devcluster.sample_history.fill import fill
from tipcflow.store import Store

COMMANDS = ("today", "coverage", "flaky")


@pytest.fixture
def history(database: Path) -> None:
    fill(f"sqlite:///{database}", lambda line: None, weeks=6, chains=10)


@pytest.mark.parametrize("command", COMMANDS)
def test_json_and_csv(tipcflow: Callable[..., Any], history: None, command: str) -> None:
    said = tipcflow(command, "--json")
    assert said.code == 0
    facts = json.loads(said.out)
    assert facts["schema_version"] == 1
    assert "generated runs" in said.err
    rows = list(csv.DictReader(io.StringIO(tipcflow(command, "--csv").out)))
    listed = facts["problems"] if command == "today" else facts["chains"]
    assert [row["chain"] for row in rows] == [row["chain"] for row in listed]
    both = tipcflow(command, "--json", "--csv")
    assert (both.code, both.out) == (2, "")
    assert "give either --json or --csv" in both.err


def test_today(tipcflow: Callable[..., Any], history: None) -> None:
    lines = tipcflow("today").out.splitlines()
    assert " chains pass on paddlepaddle-gpu 3.4.0.dev" in lines[0]
    (new,) = [line for line in lines if line.startswith("new in the last 7 days (")]
    first = lines[lines.index(new) + 2]
    assert first.startswith(("failed", "regression"))
    assert "[since framework 3.4.0.dev" in first
    assert tipcflow("today", "--chain", "nothing").err.splitlines()[-1] == "no matching chains"


def test_coverage(tipcflow: Callable[..., Any], history: None) -> None:
    out = tipcflow("coverage").out
    assert "10 ran" in out
    assert "TensorRT is not installed on the node" in out
    rows = json.loads(tipcflow("coverage", "--gap", "legs not run", "--json").out)["chains"]
    assert {"legs not run" in row["gaps"] for row in rows} == {True}
    wrong = tipcflow("coverage", "--gap", "nothing")
    assert wrong.code == 2
    assert "--gap: is not a gap; found 'nothing'; expected one of no framework, never run" in wrong.err


def test_flaky(tipcflow: Callable[..., Any], history: None) -> None:
    lines = tipcflow("flaky").out.splitlines()
    assert lines[0].endswith("of 10 chains with repeated runs ended differently in the last 90 days")
    assert any(line.startswith("INFRASTRUCTURE (95 %)") for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_without_runs(tipcflow: Callable[..., Any], database: Path, command: str) -> None:
    said = tipcflow(command)
    assert said.code == 0
    if command == "today":
        assert f"no runs in sqlite:///{database}" in said.err


def test_what_is_running(tipcflow: Callable[..., Any], database: Path) -> None:
    with Store.open() as store:
        store.runs.create(a_run(created_at=store.now() - 60))
    lines = tipcflow("today").out.splitlines()
    assert "running (1)" in lines
    assert lines[-1].split()[:2] == [a_run().id, "starting"]
