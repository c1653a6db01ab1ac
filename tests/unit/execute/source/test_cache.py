"""Stored snapshots: a task whose folder is not the one in which the run was resolved reports it."""

from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.execute.source.cache import keep_snapshot, kept_snapshot
from tipcflow.execute.source.snapshot import Snapshot

SNAPSHOT = Snapshot("c0ffee", b"archive", "5ha", "a.txt", "text", frozenset({"a.txt"}))


def test_a_task_in_the_same_folder_gets_the_snapshot(tmp_path: Path) -> None:
    first, second = keep_snapshot(tmp_path, SNAPSHOT), keep_snapshot(tmp_path, SNAPSHOT)
    assert kept_snapshot(tmp_path, first) == kept_snapshot(tmp_path, second) == SNAPSHOT


def test_worker_with_a_separate_home_does_not_reuse_an_earlier_copy(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    keep_snapshot(there, SNAPSHOT)
    source = keep_snapshot(here, SNAPSHOT)
    with pytest.raises(InfraError, match="all workers must share one TIPCFLOW_HOME"):
        kept_snapshot(there, source)
    assert kept_snapshot(there, source.model_copy(update={"mark": ""})) == SNAPSHOT, "resolved by an older version"
