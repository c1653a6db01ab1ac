"""SIGBUS from SQLite's mapped file ends a command with one line and exit code 5."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SCRIPT = """
import sqlite3, sys, threading
from tipcflow.cli.bus_error import report_bus_errors, watch_for_bus_errors

watch_for_bus_errors()
path = sys.argv[1]
held = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
held.execute("PRAGMA journal_mode=WAL")
held.execute("CREATE TABLE t(a)")
open(path + "-shm", "w").close()

def insert():
    held.execute("INSERT INTO t VALUES (1)")

with report_bus_errors(lambda reason: print(f"kept: {reason}", flush=True)):
    if sys.argv[2] == "thread":
        thread = threading.Thread(target=insert)
        thread.start()
        thread.join()
    else:
        insert()
print("went on")
"""


@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_bus_error_is_one_line_and_exit_code_5(tmp_path: Path, where: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "x.db"), where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip().splitlines()) == (
        5,
        [
            "infra_failure: the database files were truncated or made read-only while in use (SIGBUS)",
        ],
    )
    assert done.stdout.startswith("kept: the database files")
    assert "went on" not in done.stdout
