"""Out of memory: the kernel's killer in a memory cgroup, and weaker evidence where the kernel has none."""

import os
import sys
from pathlib import Path

import pytest

from tipcflow.domain import EndReason
from tipcflow.remote.runner import oom

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
EATS = f"{sys.executable} -c 'import time; time.sleep(0.5); x = b\"1\" * 400_000_000; time.sleep(300)'"


@pytest.fixture
def cgroup(tmp_path):
    """A cgroup that may use 100 MB; skips where none can be made."""
    limit = "memory.limit_in_bytes" if (V1 / "memory.limit_in_bytes").exists() else "memory.max"
    place = (V1 if limit == "memory.limit_in_bytes" else V2) / f"tipcflow-test-{os.getpid()}"
    try:
        place.mkdir()
        (place / limit).write_text("100000000")
        if (place / "memory.memsw.limit_in_bytes").exists():
            (place / "memory.memsw.limit_in_bytes").write_text("100000000")
        elif (place / "memory.swap.max").exists():
            (place / "memory.swap.max").write_text("0")
    except OSError as error:
        if place.is_dir():
            place.rmdir()
        pytest.skip(f"no memory cgroup can be made here: {error}")
    yield place
    place.rmdir()


@pytest.mark.process
def test_a_command_that_the_kernel_kills(bench, cgroup):
    record = bench.end_of(f"echo $$ > {cgroup}/cgroup.procs; exec {EATS}")
    assert (record.reason, record.signal, record.oom) == (EndReason.SIGNALED, 9, True)


@pytest.mark.process
@pytest.mark.parametrize("bench", ["ours"], indirect=True)
def test_a_worker_that_the_kernel_kills(bench, cgroup):
    """Its launcher ends with a code of its own."""
    record = bench.end_of(f"(echo $BASHPID > {cgroup}/cgroup.procs; exec {EATS}) & wait $! || exit 250")
    assert (record.reason, record.exit_code, record.oom) == (EndReason.EXITED, 250, True)


@pytest.mark.parametrize(
    ("before", "now", "named", "expected"),
    [
        (3, 3, {7}, False),
        (3, 4, {7}, True),
        (3, 4, {8}, False),
        (3, 4, None, True),  # we may not read whom it killed
    ],
)
def test_oom_kill_is_attributed_to_the_job(monkeypatch, before, now, named, expected):
    monkeypatch.setattr(oom, "kills", lambda: now)
    monkeypatch.setattr(oom, "killed_pids", lambda: named)
    assert oom.killed(before, {7}) is expected


@pytest.mark.parametrize(("names", "named"), [(set(), True), ({8}, True), (None, False)])
def test_whether_the_kernel_names_killed_processes(monkeypatch, names, named):
    monkeypatch.setattr(oom, "killed_pids", lambda: names)
    assert oom.is_named() is named


@pytest.mark.process
def test_a_failed_job_states_whether_the_killed_process_is_known(bench):
    record = bench.end_of("echo no such file >&2; exit 1")
    assert (record.oom, record.oom_named) == (False, oom.killed_pids() is not None)
