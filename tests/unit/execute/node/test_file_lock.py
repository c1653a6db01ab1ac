"""The lock of processes that share a folder."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.execute.node.file_lock import locked

HOLDER = """import sys, time
from pathlib import Path
from tipcflow.execute.node.file_lock import locked
with locked(Path(sys.argv[1]), seconds=5):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.process
def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        begun = time.monotonic()
        with (
            pytest.raises(InfraError, match=f"{path} was locked for 1 s\n  hint: another tipcflow process holds"),
            locked(path, seconds=1.0),
        ):
            pass
        assert 1.0 <= time.monotonic() - begun < 20
    finally:
        holder.kill()
        holder.wait()
    with locked(path, seconds=5.0):
        pass


def test_two_users_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock", seconds=5.0),
        pytest.raises(InfraError, match="was locked for 0 s"),
        locked(tmp_path / "lock", seconds=0.1),
    ):
        pass
    with locked(tmp_path / "lock", seconds=0.1):
        pass


def test_an_error_releases_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), locked(tmp_path / "lock", seconds=5.0):
        raise ValueError("inside")
    with locked(tmp_path / "lock", seconds=0.1):
        pass
