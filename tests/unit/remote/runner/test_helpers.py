"""Helpers of controllers on a node: they are marked, have a deadline, and are ended when no controller waits."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tipcflow.domain import Node
from tipcflow.remote import commands
from tipcflow.remote.runner import helpers

pytestmark = [pytest.mark.process, pytest.mark.parametrize("bench", ["ours"], indirect=True)]


@pytest.fixture
def stalled(bench):
    """Starts uploads whose connection is gone without the node knowing: nothing comes, and no end."""
    started = []

    def start(seconds=300.0):
        command = commands.write_file(f"{bench.workspace}/suites/one.tar.gz", seconds=seconds)
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(["sh", "-c", command], **streams))
        return started[-1]

    yield start
    for process in started:
        for stop in (process.terminate, process.stdin.close):
            stop()
        process.wait(20)


def uploads(bench):
    """The output of `list` for them."""
    return [one for one in bench.call("list", bench.workspace)["helpers"] if one["helper"] == "upload"]


def test_an_upload_is_listed_and_ends_at_its_deadline(bench, stalled, wait):
    upload = stalled(seconds=2.0)
    found = wait(lambda: [one for one in uploads(bench) if one["cmdline"] == "cat"], "the upload")
    assert (found[0]["for"], found[0]["deadline_s"]) == (f"{bench.workspace}/suites/one.tar.gz", 2.0)
    assert upload.wait(20) != 0
    wait(lambda: uploads(bench) == [], "its end", 10)
    assert list((bench.workspace / "suites").iterdir()) == []


def test_reap_ends_a_silent_upload_and_spares_one_that_just_began(bench, stalled, wait):
    upload = stalled()
    wait(lambda: [one for one in uploads(bench) if one["cmdline"] == "cat"], "the upload")
    assert bench.call("reap", bench.workspace)["helpers"] == []
    (part,) = (bench.workspace / "suites").glob("*.tmp")
    old = time.time() - helpers.SILENT_S - 10
    os.utime(part, (old, old))
    assert [one["over"] for one in uploads(bench) if one["cmdline"] == "cat"] == [True]
    report = bench.call("reap", bench.workspace, "--helpers")
    assert "cat" in [one["cmdline"] for one in report["helpers"] if one["helper"] == "upload"]
    assert report["left"] == []
    assert upload.wait(20) != 0
    assert uploads(bench) == []


def test_reap_ends_jobs_over_the_deadline(bench, wait):
    marks = {"TIPCFLOW_HELPER": "fetch", "TIPCFLOW_FOR": str(bench.workspace), "TIPCFLOW_DEADLINE": "1"}
    late = subprocess.Popen(["sleep", "300"], env={**os.environ, **marks})
    other = subprocess.Popen(["sleep", "300"], env={**os.environ, **marks, "TIPCFLOW_FOR": "/elsewhere"})
    try:
        wait(lambda: any(one["age_s"] > 1.5 for one in bench.call("list", bench.workspace)["helpers"]), "its age")
        assert [one["pid"] for one in bench.call("reap", bench.workspace)["helpers"]] == [late.pid]
        assert late.wait(10) == -signal.SIGTERM
        assert other.poll() is None
    finally:
        for process in (late, other):
            process.kill()
            process.wait()


def run(node: Node, command: str, **streams: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sh", "-c", command], stdin=subprocess.DEVNULL, **streams)


def test_a_command_of_the_runner_ends_at_its_deadline(bench):
    """Stopped for a while, as on a node that swaps: the helper must not respond long after the request."""
    job = bench.job("sleep 300")
    bench.call("start", job)
    watch = run(bench.node, commands.watch(bench.node, str(job), seconds=1000).replace("=1090", "=2"), stdout=-1)
    begin = time.monotonic()
    assert watch.wait(20) == 1
    assert time.monotonic() - begin < 10
    bench.call("stop", job, "over")
    bench.ended(job)


def test_evidence_ends_without_a_reader(bench, wait):
    job = bench.job("sleep 300", hang_s=0.5)
    pid = bench.call("start", job)["pid"]
    os.kill(pid, signal.SIGSTOP)
    evidence = run(bench.node, commands.evidence(bench.node, str(job)), stdout=subprocess.PIPE)
    try:
        evidence.stdout.close()
        evidence.wait(20)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert not [one for one in bench.call("list", bench.workspace)["helpers"] if one["helper"] == "evidence"]
    bench.call("reap", bench.workspace, "--living")


def test_a_response_that_takes_seconds_ends_with_success(bench):
    """The alarm that checks the deadline must not strike while the interpreter ends."""
    codes = set()
    for delay in range(8):
        watch = bench.popen(
            "watch", bench.workspace / "no job", "--for", f"{0.985 + delay / 200}", env={"TIPCFLOW_DEADLINE": "60"}
        )
        watch.communicate(timeout=30)
        codes.add(watch.returncode)
    assert codes == {0}


def test_helpers_are_not_processes_of_the_run(bench):
    """A watch of a living job must not be taken for a leftover of its run."""
    job = bench.job("sleep 300")
    bench.call("start", job)
    watch = run(bench.node, commands.watch(bench.node, str(job), seconds=60), stdout=subprocess.PIPE)
    report = bench.call("list", bench.workspace)
    assert watch.pid not in [one["pid"] for one in report["processes"]]
    bench.call("stop", job, "over")
    bench.ended(job)
    assert watch.wait(20) == 0
    assert Path(job, "exit.json").exists()


@pytest.fixture
def stopped_watch(bench, wait):
    """Starts the watch of a living job and stops it, as a debugger or a frozen session does."""
    started = []

    def start(job):
        command = commands.watch(bench.node, str(job), seconds=300)
        watch = run(bench.node, f"exec {command}", stdout=subprocess.PIPE)
        started.append(watch)
        watch.stdout.readline()
        os.kill(watch.pid, signal.SIGSTOP)
        wait(lambda: state_of(watch.pid) == "T", "the watch to be stopped")
        return watch

    yield start
    for watch in started:
        watch.kill()
        watch.wait(20)


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_stopped_watch_ends_with_its_job(bench, wait, stopped_watch):
    job, other = bench.job("sleep 300"), bench.job("sleep 300", step="other")
    for each in (job, other):
        bench.call("start", each)
    watch, watch_of_other = stopped_watch(job), stopped_watch(other)
    bench.call("stop", job, "over")
    assert watch.wait(20) == -signal.SIGTERM
    log = job / "runner.log"
    wait(lambda: f"guard: pid {watch.pid}, a stopped command" in log.read_text(), "the guard's line")
    assert state_of(watch_of_other.pid) == "T"  # its job is running: its controller may continue it
    bench.call("stop", other, "over")
    assert watch_of_other.wait(20) == -signal.SIGTERM


def test_reap_ends_a_watch_that_was_stopped_after_its_jobs_end(bench, stopped_watch):
    job = bench.job("sleep 300")
    bench.call("start", job)
    for guard in bench.guards():
        os.kill(guard, signal.SIGKILL)
    watch = stopped_watch(job)
    bench.call("stop", job, "over")
    bench.ended(job)
    (listed,) = bench.call("list", bench.workspace)["helpers"]
    assert (listed["pid"], listed["stopped"], listed["over"]) == (watch.pid, True, True)
    begin = time.monotonic()
    report = bench.call("reap", bench.workspace, "--helpers")
    assert [(one["pid"], one["signal"]) for one in report["helpers"]] == [(watch.pid, "SIGTERM")]
    assert time.monotonic() - begin < helpers.GRACE_S  # no wait for its own end
    assert watch.wait(20) == -signal.SIGTERM
