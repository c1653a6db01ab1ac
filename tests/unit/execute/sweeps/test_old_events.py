"""Old event files are removed by the processes of each home."""

import os
import time
from pathlib import Path

import pytest

from tipcflow.execute.events import events_path
from tipcflow.execute.sweeps import old_events
from tipcflow.execute.sweeps.old_events import EVENTS_S, EVERY_S, MARK, remove_old_events, trim_events, trim_now


def aged(home: Path, run: str, age_s: float) -> Path:
    path = events_path(home, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def wait_for_removal(path: Path) -> None:
    until = time.monotonic() + 30
    while path.exists():
        assert time.monotonic() < until, f"{path} was not removed"
        time.sleep(0.01)


def test_a_process_removes_old_event_files_of_its_home_once_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, other = aged(tmp_path, "new", EVENTS_S - 60), aged(tmp_path, "old", EVENTS_S + 60).with_name("main.log")
    other.write_text("log of the run\n")
    trim_events(tmp_path)
    wait_for_removal(events_path(tmp_path, "old"))
    assert (new.exists(), other.exists()) == (True, True)
    searched: list[Path] = []
    monkeypatch.setattr(old_events, "trim_now", searched.append)
    trim_events(tmp_path)
    old_events._due[tmp_path] -= EVERY_S
    trim_events(tmp_path)
    until = time.monotonic() + 30
    while not searched and time.monotonic() < until:
        time.sleep(0.01)
    assert searched == [tmp_path]


def test_processes_of_one_home_search_the_folder_once_an_hour(tmp_path: Path) -> None:
    aged(tmp_path, "new", 0)
    trim_now(tmp_path)
    old, mark = aged(tmp_path, "old", EVENTS_S + 60), tmp_path / "runs" / MARK
    trim_now(tmp_path)
    assert old.exists()
    os.utime(mark, (time.time() - EVERY_S - 60,) * 2)
    trim_now(tmp_path)
    assert not old.exists()
    assert time.time() - mark.stat().st_mtime < EVERY_S


def test_files_beyond_the_time_limit_stay_until_the_next_call(tmp_path: Path) -> None:
    old = [aged(tmp_path, run, EVENTS_S + 60) for run in ("a", "b")]
    before = time.time() - EVENTS_S
    assert remove_old_events(tmp_path, before=before, seconds=-1.0) == 0
    assert all(path.exists() for path in old)
    assert remove_old_events(tmp_path, before=before) == 2
    assert remove_old_events(tmp_path / "nowhere", before=before) == 0


def test_an_error_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "runs").write_text("not a folder")
    trim_now(tmp_path)
    assert f"cannot remove old files of runs in {tmp_path}: NotADirectoryError" in caplog.text
