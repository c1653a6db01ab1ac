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


def test_run_is_removed_by_its_id(tipcflow: Callable[..., Any], home: Path, old: Path) -> None:
    reported = tipcflow("prune", "--run", old.name)
    lines = reported.out.splitlines()
    assert lines[:2] == [
        f"would be removed: 1 file (2.0 KiB): {old}",
        f"would be removed: no files: {home}/objects",
    ]
    assert [line.split(": ")[:2] for line in lines[2:]] == [
        ["remains", "other machines"],
        ["remains", "metrics database"],
        ["remains", "backups"],
    ]
    assert (reported.code, reported.err, old.is_dir()) == (0, "pass --yes to remove them\n", True)
    done = tipcflow("prune", "--run", old.name, "--yes", "--json")
    found = json.loads(done.out)
    assert (done.code, found["run"], found["removed"], found["places"][0]["name"]) == (0, old.name, True, str(old))
    assert not old.exists()
    again = tipcflow("prune", "--run", old.name, "--yes")
    assert again.out.startswith(f"removed: no files: {old}\n")


def test_active_run_keeps_its_files(tipcflow: Callable[..., Any], old: Path) -> None:
    active = old.with_name("20250101t000000-toy-0a1c")
    done = tipcflow("prune", "--run", active.name, "--yes")
    assert (done.code, active.is_dir()) == (2, True)
    assert "has no status yet: it may still write files" in done.err
