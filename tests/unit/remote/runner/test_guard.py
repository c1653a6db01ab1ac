"""A runner that gets SIGKILL: its guard, or the next inspection, ends all processes of its job, marked or not."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tipcflow.domain import EndReason
from tipcflow.remote.runner import cgroup, membership
from tipcflow.remote.runner.processes import scan

pytestmark = pytest.mark.process
OURS = pytest.mark.parametrize("bench", ["ours"], indirect=True)
# Forked twice, in a session of its own, without the runner's marks, ignores SIGTERM; prints its pid.
HIDDEN = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in (1, 2):
    if os.fork():
        os._exit(0)
    os.setsid()
open("daemon.pid", "w").write(str(os.getpid()))
os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)"], {})
"""


@pytest.fixture
def hidden(bench, wait):
    """A running job with such a daemon: (job folder, the runner's pid, the daemon's)."""
    (bench.root / "hidden.py").write_text(HIDDEN)
    job = bench.job(f"{sys.executable} hidden.py; sleep 303", slots=(0,), kill_after_s=0.5, sample_every_s=0.05)
    pid = bench.call("start", job)["pid"]
    file = bench.root / "daemon.pid"
    wait(lambda: file.exists() and file.read_text(), "the daemon")
    daemon = int(file.read_text())
    wait(lambda: b"time.sleep" in words_of(daemon), "its own program")
    yield job, pid, daemon
    if alive(daemon):
        os.kill(daemon, signal.SIGKILL)


def words_of(pid):
    """A process's command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(pid):
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def listed(job: Path) -> list[int]:
    """The processes that the runner has written down; none before its first sample."""
    path = job / "processes.json"
    return [pid for pid, _ in json.loads(path.read_text())["processes"]] if path.exists() else []


def test_a_killed_runners_job_is_ended_by_its_guard(bench, wait, hidden):
    job, runner, daemon = hidden
    os.kill(runner, signal.SIGKILL)
    wait(lambda: not alive(daemon), "the daemon's end", 10)
    wait(lambda: not bench.ours(), "the guard's end", 10)
    assert bench.call("poll", job)["state"] == "lost"
    assert "the runner was ended by signal 9" in (job / "runner.log").read_text()
    assert not (job / "processes.json").exists()


@OURS
@pytest.mark.parametrize("group", ["with a control group", "without"])
@pytest.mark.parametrize("who", ["list", "reap", "next job"])
def test_job_without_a_guard_is_found_by_the_next_command(bench, wait, hidden, group, who):
    job, runner, daemon = hidden
    wait(lambda: daemon in listed(job), "list")
    if group == "without":
        (job / "cgroup").unlink(missing_ok=True)
    bench.kill_runner(runner)
    wait(lambda: bench.call("poll", job)["state"] == "lost", "lost")
    for pid in bench.ours():
        os.kill(pid, signal.SIGKILL)  # also what carries marks, and could lead to it
    assert alive(daemon)
    if who == "list":
        found = {one["pid"]: one for one in bench.call("list", bench.workspace)["processes"]}
        assert (found[daemon]["job"], found[daemon]["user"]) == ("r1/train/norm_train/1", "root")
    elif who == "reap":
        report = bench.call("reap", bench.workspace, "--job", "r1/train/norm_train/1")
        assert (daemon, "SIGKILL") in [(one["pid"], one["signal"]) for one in report["killed"]]
        assert (report["left"], alive(daemon)) == ([], False)
    else:
        assert bench.end_of("true", step="next", slots=(0,)).ok
        assert not alive(daemon)


@OURS
def test_control_group_finds_processes_missed_by_samples(bench, wait, hidden):
    job, runner, daemon = hidden
    if not (job / "cgroup").exists():
        pytest.skip("no cgroup v2 that may be written here")
    bench.kill_runner(runner)
    (job / "processes.json").unlink(missing_ok=True)
    group = Path((job / "cgroup").read_text())
    assert daemon in map(int, (group / "cgroup.procs").read_text().split())
    report = bench.call("reap", bench.workspace)
    assert daemon in [one["pid"] for one in report["killed"]]
    assert not group.exists()


@OURS
def test_an_ended_job_leaves_no_control_group_and_no_list(bench):
    job = bench.job("sleep 0.3")
    bench.call("start", job)
    assert bench.ended(job).ok
    assert not (job / "processes.json").exists()
    if (job / "cgroup").exists():
        assert not Path((job / "cgroup").read_text()).exists()


@OURS
def test_a_guard_ignores_term_while_its_runner_runs(bench):
    job = bench.job("sleep 0.5; echo done")
    bench.call("start", job)
    for guard in bench.guards():
        os.kill(guard, signal.SIGTERM)
    assert bench.ended(job).reason is EndReason.EXITED


@OURS
def test_a_job_continues_without_its_guard(bench):
    job = bench.job("sleep 0.5; echo done")
    bench.call("start", job)
    for guard in bench.guards():
        os.kill(guard, signal.SIGKILL)
    assert bench.ended(job).ok


@OURS
def test_guard_is_listed_as_a_helper(bench):
    job = bench.job("sleep 300")
    bench.call("start", job)
    report = bench.call("list", bench.workspace)
    assert [one["helper"] for one in report["helpers"]] == ["guard"]
    assert report["helpers"][0]["pid"] not in [one["pid"] for one in report["processes"]]
    bench.call("stop", job, "over")
    bench.ended(job)


def test_a_reused_pid_is_left_alone(tmp_path):
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        proc = next(one for one in scan() if one.pid == child.pid)
        seen = membership.RecordedProcesses(str(tmp_path))
        seen.keep([proc])
        assert membership.recorded_pids(str(tmp_path), scan()) == {child.pid}
        report = json.loads((tmp_path / "processes.json").read_text())
        for changed in (dict(report, boot="another"), dict(report, processes=[[child.pid, proc.start + 1]])):
            (tmp_path / "processes.json").write_text(json.dumps(changed))
            assert membership.recorded_pids(str(tmp_path), scan()) == set()
    finally:
        child.kill()
        child.wait()


def test_a_user_without_a_writable_group_is_given_a_scope(tmp_path, monkeypatch):
    """`busctl` gets the call that systemd-run --user --scope makes; here a program that records its arguments."""
    program = tmp_path / "busctl"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\n')
    program.chmod(0o755)
    (tmp_path / "run/systemd").mkdir(parents=True)
    (tmp_path / "run/systemd/private").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    cgroup.scope_of_own("tipcflow-1-2")
    words = (tmp_path / "called").read_text()
    assert "StartTransientUnit ssa(sv)a(sa(sv)) tipcflow-1-2.scope fail 3" in words
    assert f"PIDs au 1 {os.getpid()} Delegate b true" in words


def test_empty_groups_of_dead_runners_are_removed(tmp_path):
    for name in ("tipcflow-1-1", "tipcflow-2-2", "other"):
        (tmp_path / name).mkdir()
    held = cgroup.Group(str(tmp_path / "tipcflow-2-2"))
    held.hold()
    cgroup.remove_unused(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "tipcflow-2-2"]
