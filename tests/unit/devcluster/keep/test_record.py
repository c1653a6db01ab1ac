"""The record of a kept service: its condition follows from the process that owns it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.keep import record
from devcluster.keep.record import Record, exclusive, read
from devcluster.local_nodes.processes import start_time
from tipcflow.domain import InfraError


def of_this_process(**fields: object) -> Record:
    return Record("nodes", os.getpid(), start_time(os.getpid()), 1.0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "condition"),
    [
        (of_this_process(), "starting"),
        (of_this_process(ready=True), "running"),
        (of_this_process(ready=True, failed="node b ended"), "failed"),
        (Record("nodes", os.getpid(), 1, 1.0, ready=True), "stale"),
        (Record("nodes", 0, 0, 1.0), "stale"),
    ],
    ids=["starting", "running", "failed", "pid of another process", "no process"],
)
def test_condition_follows_from_the_owning_process(made: Record, condition: str) -> None:
    assert made.condition == condition


def test_record_survives_a_round_trip_and_is_removed_with_its_folder(tmp_path: Path) -> None:
    made = of_this_process(facts={"nodes": {"a": ["10.0.0.1", 22]}})
    made.save(tmp_path)
    assert read(tmp_path, "nodes") == made
    assert read(tmp_path, "airflow") is None
    record.remove(tmp_path, "nodes")
    record.remove(tmp_path, "nodes")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "nodes"}', '{"unknown": 1}'])
def test_a_damaged_record_counts_as_none(tmp_path: Path, text: str) -> None:
    of_this_process().save(tmp_path)
    record.file_of(tmp_path, "nodes").write_text(text)
    assert read(tmp_path, "nodes") is None


@pytest.mark.process
def test_exclusive_lock_admits_a_single_command(tmp_path: Path) -> None:
    other = (
        "import sys; from pathlib import Path; from devcluster.keep.record import exclusive\n"
        f"with exclusive(Path({str(tmp_path)!r}), 'nodes'): print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InfraError, match="another command is starting or stopping the local nodes"):
            exclusive(tmp_path, "nodes").__enter__()
        with exclusive(tmp_path, "airflow"):
            pass
    finally:
        process.communicate(timeout=30)
    with exclusive(tmp_path, "nodes"):
        pass
    assert list(tmp_path.iterdir()) == []
