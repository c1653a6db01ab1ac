"""`tipcflow today`, `changes`, `coverage`, `flaky` and `matrix`, as their users read them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, database_of

from devcluster.sample_history.fill import fill
from tipcflow.store import Store

COMMANDS = ("today", "changes", "coverage", "flaky", "matrix")


def six_weeks(store: Store) -> None:
    fill(store.url, lambda line: None, weeks=6, chains=10)


@pytest.fixture
def history(database: Path) -> None:
    database.write_bytes(database_of(six_weeks))


@pytest.mark.parametrize("command", COMMANDS)
def test_json_and_csv_are_printed(tipcflow: Callable[..., Any], history: None, command: str) -> None:
    result = tipcflow(command, "--json")
    assert result.code == 0
    facts = json.loads(result.out)
    assert facts["schema_version"] == 1
    assert "generated runs" in result.err
    rows = list(csv.DictReader(io.StringIO(tipcflow(command, "--csv").out)))
    assert [row["model" if command == "matrix" else "chain"] for row in rows] == _listed(command, facts)
    both = tipcflow(command, "--json", "--csv")
    assert (both.code, both.out) == (2, "")
    assert "give either --json or --csv" in both.err


def _listed(command: str, facts: Any) -> list[str]:
    """The chains, or the models of the cells, in the order of the JSON."""
    if command == "changes":
        return [row["chain"] for group in facts["groups"] for row in group["changes"]]
    if command == "matrix":
        return [row["model"] for row in facts["rows"] for column in facts["columns"] if column in row["cells"]]
    return [row["chain"] for row in facts["problems" if command == "today" else "chains"]]


def test_changes_lists_regressed_metrics(tipcflow: Callable[..., Any], history: None) -> None:
    lines = tipcflow("changes", "--direction", "worse").out.splitlines()
    assert " became worse with " in lines[0]
    assert lines[2].startswith("framework 3.4.0.dev")
    assert lines[2].endswith(" still)")
    assert lines[3].split() == ["STATUS", "SINCE", "STATE", "CHANGE", "METRIC", "CHAIN"]
    assert "open   +11.0 %  batch_cost  generated_clas/ResNet18/train_infer_python on generated-v100" in "\n".join(
        lines
    )
    assert tipcflow("changes", "--chain", "nothing").out == "no metric changed in the last 30 days\n"
    wrong = tipcflow("changes", "--state", "new")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--state: invalid value; found 'new'; expected one of open, accepted, over" in wrong.err


def test_matrix_lists_models_by_version(tipcflow: Callable[..., Any], history: None) -> None:
    lines = tipcflow("matrix", "--columns", "3").out.splitlines()
    assert lines[0].endswith(" of 10 models pass")
    assert lines[2].split() == ["MODEL", "a", "b", "c"]
    assert lines[3].split()[:2] == ["generated_clas/ResNet101", "R"]
    assert lines[14].startswith("a  paddlepaddle-gpu 3.4.0.dev")
    assert ". pass" in lines[-1]
    assert "R regression" in lines[-1]
    only = tipcflow("matrix", "--by", "environment", "--problems", "--limit", "1").out.splitlines()
    assert only[0].endswith(" of 10 models pass")
    assert "gpu/8x-tesla-v100" in only[5]
    wrong = tipcflow("matrix", "--by", "node")
    assert (wrong.code, wrong.out) == (2, "")
    assert "--by: invalid value; found 'node'; expected one of build, environment, mode, variant" in wrong.err
    assert tipcflow("matrix", "--chain", "nothing").out == "no matching models\n"


def test_today_lists_new_problems(tipcflow: Callable[..., Any], history: None) -> None:
    lines = tipcflow("today").out.splitlines()
    assert " chains pass on paddlepaddle-gpu 3.4.0.dev" in lines[0]
    (new,) = [line for line in lines if line.startswith("new in the last 7 days (")]
    first = lines[lines.index(new) + 2]
    assert first.startswith(("failed", "regression"))
    assert "[since framework 3.4.0.dev" in first
    assert tipcflow("today", "--chain", "nothing").err.splitlines()[-1] == "no matching chains"


def test_coverage_lists_gaps(tipcflow: Callable[..., Any], history: None) -> None:
    out = tipcflow("coverage").out
    assert "10 ran" in out
    assert "TensorRT is not installed on the node" in out
    rows = json.loads(tipcflow("coverage", "--gap", "legs not run", "--json").out)["chains"]
    assert {"legs not run" in row["gaps"] for row in rows} == {True}
    wrong = tipcflow("coverage", "--gap", "nothing")
    assert wrong.code == 2
    assert "--gap: is not a gap; found 'nothing'; expected one of no framework, never run" in wrong.err


def test_flaky_lists_chains_with_different_outcomes(tipcflow: Callable[..., Any], history: None) -> None:
    lines = tipcflow("flaky").out.splitlines()
    assert lines[0].endswith("of 10 chains with repeated runs ended differently in the last 90 days")
    assert any(line.startswith("INFRASTRUCTURE (95 %)") for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_overviews_without_runs_print_a_message(
    tipcflow: Callable[..., Any], database: Path, command: str
) -> None:
    result = tipcflow(command)
    assert result.code == 0
    if command == "today":
        assert f"no runs in sqlite:///{database}" in result.err


def test_today_lists_running_runs(tipcflow: Callable[..., Any], database: Path) -> None:
    with Store.open() as store:
        store.runs.create(a_run(created_at=store.now() - 60))
    lines = tipcflow("today").out.splitlines()
    assert "running (1)" in lines
    assert lines[-1].split()[:2] == [a_run().id, "starting"]
