"""`tipcflow prune` reports what it would remove, and removes with --yes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, record_run

from tipcflow.store import Store

DAY = 86_400.0


@pytest.fixture
def old(home: Path, database: Path) -> Path:
    """The folder of an old run."""
    with Store.open(f"sqlite:///{database}") as store:
        run = record_run(store, a_run("20250101t000000-toy-0a1b", created_at=store.now() - 500 * DAY))
        store.runs.create(a_run("20250101t000000-toy-0a1c", created_at=store.now() - 500 * DAY))
    for name in (run.id, "20250101t000000-toy-0a1c"):
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "main.log").write_text("x" * 2048)
    return home / "runs" / run.id


def test_files_are_only_reported_without_yes(tipcflow: Callable[..., Any], home: Path, old: Path) -> None:
    done = tipcflow("prune")
    lines = done.out.splitlines()
    assert lines[0].startswith("20250101t000000-toy-0a1b  ended 202")
    assert lines[0].endswith(" UTC  2.0 KiB")
    assert lines[1:] == [
        f"would be removed, of 1 run that ended more than 400 days ago: 1 file (2.0 KiB) in {home}/runs",
        "kept: files of runs without a status: 1",
    ]
    assert done.err == "pass --yes to remove them\n"
    assert old.is_dir()


def test_files_are_removed_with_yes(tipcflow: Callable[..., Any], home: Path, old: Path) -> None:
    done = tipcflow("prune", "--yes", "--json")
    found = json.loads(done.out)
    assert done.code == 0
    assert (found["removed"], found["files"], found["bytes"], found["objects"]) == (True, 1, 2048, 0)
    assert [run["run"] for run in found["runs"]] == [old.name]
    assert found["kept"] == {"of runs without a status": 1}
    assert (found["folder"], found["store"], found["problems"]) == (f"{home}/runs", None, [])
    assert not old.exists()
    again = tipcflow("prune", "--yes").out
    assert "removed, of 0 runs that ended more than 400 days ago: 0 files (0 B)" in again


def test_younger_runs_are_chosen_by_days(tipcflow: Callable[..., Any], old: Path) -> None:
    assert tipcflow("prune", "--older-than", "501").out.startswith("would be removed, of 0 runs")
    assert tipcflow("prune", "--older-than", "0").code == 2
