"""A full disk prevents neither stopping a job nor the remaining legs."""

import json
import os
import subprocess

import pytest

from tipcflow.remote.runner import container, files, processes
from tipcflow.remote.runner.job import Job
from tipcflow.remote.runner.ranks import RankEnds, Servers

pytestmark = [pytest.mark.process, pytest.mark.root]


@pytest.fixture
def small(bench):
    """The jobs' folder on a file system of 2 MiB."""
    folder = bench.workspace / "jobs"
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], check=True)
    yield bench
    bench.close()
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("how", ["stop", "reap"])
def test_a_job_on_a_full_disk_can_be_stopped(small, how, wait):
    job = small.job("yes | head -c 10000000; sleep 300")
    small.call("start", job)
    wait(lambda: os.statvfs(job).f_bavail == 0, "a full disk")
    if how == "stop":
        small.call("stop", job, "over")
    else:
        assert small.call("reap", small.workspace, "--living")["left"] == []
    assert small.ended(job).reason.value == "stopped"
    assert not small.ours()


def test_the_runner_is_interrupted_if_no_file_can_be_written(tmp_path, monkeypatch):
    """The job's runner then gets SIGINT, if it is running: SIGTERM would count as the node's shutdown."""
    sent = []
    (tmp_path / "lock").write_text("4711")
    monkeypatch.setattr(files, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    monkeypatch.setattr(files, "locked", lambda _: True)
    monkeypatch.setattr(files.os, "kill", lambda *words: sent.append(words))
    (tmp_path / "stop").mkdir()
    files.request_stop(str(tmp_path), "over")
    assert sent == [(4711, files.signal.SIGINT)]


def test_processes_that_a_node_hides(monkeypatch):
    """With /proc mounted hidepid=1 even the state of other users' processes cannot be read: they are not ours."""
    real = open

    def hidden(path, *words):
        if str(path).startswith("/proc/1/"):
            raise PermissionError(13, "hidden", path)
        return real(path, *words)

    monkeypatch.setattr(processes, "open", hidden, raising=False)
    found = {proc.pid for proc in processes.scan()}
    assert os.getpid() in found
    assert 1 not in found


FILL = "yes | head -c 10000000; true"


@pytest.mark.parametrize("bench", ["ours"], indirect=True)
def test_legs_continue_when_the_disk_stays_full(small):
    """The ballast's space holds the records of a few legs; then it is used up."""
    job = small.job(*[FILL] * 16, "touch last", legs=True, keep_going=True)
    small.call("start", job)
    record = small.ended(job)
    assert (record.reason.value, record.exit_code) == ("exited", 0), record.message
    assert (small.root / "last").exists()


def test_artefacts_are_listed_on_a_full_disk(small):
    """The last leg's record still has space beside the first one's; the ballast's space is for the list."""
    (small.root / "made").write_text("1")
    texts = ("true", f"{FILL}; touch made")
    job = small.job(*texts, legs=True, keep_going=True, artefacts=("made",), sample_every_s=60.0)
    small.call("start", job)
    record = small.ended(job)
    assert "artefacts not listed" not in record.message
    listed = json.loads((job / "artefacts.json").read_text())
    assert [one["path"] for one in listed] == ["made"]


def test_processes_of_an_unrecorded_command_are_ended(tmp_path, monkeypatch):
    """The job began, and then the disk had no space for its records."""
    ended = []

    class Workers:
        ends, servers = RankEnds(), Servers(str(tmp_path), {})

        def end(self, meanwhile, *, grace_s):
            ended.append(grace_s)

    spec = dict.fromkeys(("run", "step", "attempt", "node", "root"), "")
    spec |= {"commands": [{"leg": "one"}, {"leg": "two"}], "keep_going": True, "deadline_s": 60.0, "lease_s": 60.0}
    made = Job(str(tmp_path), spec, -1, -1)
    made.workers = Workers()
    report = iter(
        [OSError(28, "No space left on device", "/log"), {"leg": "two", "exit_code": 0, "reason": "exited"}]
    )

    def command(_):
        result = next(report)
        if isinstance(result, OSError):
            raise result
        return result

    monkeypatch.setattr(made, "command", command)
    assert made.commands() == ""
    assert ended == [0.0]
    assert [one["reason"] for one in made.records] == ["refused", "exited"]
    assert made.records[0]["message"] == "cannot start: /log: No space left on device"


def test_two_reports_that_a_container_is_gone(tmp_path):
    mark = tmp_path / container.MARK
    mark.touch()
    container.unmark(str(mark))
    container.unmark(str(mark))
    assert not mark.exists()
