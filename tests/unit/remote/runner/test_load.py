"""Large jobs: the memory of the runner and of a watch stays bounded, and so do their messages."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.full]
GIB = 1024**3


def peak(pid):
    """Most memory that a process ever had, bytes; 0 when it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


def test_gibibyte_of_log_is_followed_in_bounded_memory(bench, tmp_path):
    """Watched through a link that is slower than the command."""
    job = bench.job(f"yes 'a line of a log that has no end [Iter: 1/2]' | head -c {GIB}; sleep 1; exit 3")
    runner = bench.call("start", job)["pid"]
    watch = bench.popen("watch", job, "--for", "600")
    most, size, messages, last = 0, 0, 0, b""
    for line in watch.stdout:
        messages += len(line)
        last = line
        most = max(most, peak(runner), peak(watch.pid))
        match = re.match(rb'\{"event": "log", "leg": "", "offset": (\d+), "size": (\d+)', line)
        if match:
            assert int(match.group(1)) == size
            size += int(match.group(2))
            time.sleep(0.005)
    assert size == GIB
    assert b'"exit_code": 3' in last
    assert most < 100 * 1024**2
    assert messages < GIB / 2
    bench.ended(job)


def test_memory_is_bounded_for_thousands_of_processes(bench):
    text = f"{sys.executable} -c 'import os\nfor _ in range(5000):\n if not os.fork(): os._exit(0)\n os.wait()'"
    job = bench.job(text)
    pid = bench.call("start", job)["pid"]
    most = peak(pid)
    while not (job / "exit.json").exists():
        most = max(most, peak(pid))
        time.sleep(0.1)
    assert bench.ended(job).ok
    assert 0 < most < 100 * 1024**2


@pytest.mark.root
def test_a_log_that_fills_the_disk(bench):
    """The command continues or fails; in both cases the record exists and describes it."""
    (bench.workspace / "jobs").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(bench.workspace / "jobs")], check=True)
    try:
        job = bench.job("yes | head -c 100000000")
        bench.call("start", job)
        record = bench.ended(job)
        assert record.exit_code == 1
        assert record.message.endswith("is full")
        assert record.disk_full
    finally:
        bench.close()
        subprocess.run(["umount", "-l", str(bench.workspace / "jobs")], check=True)
