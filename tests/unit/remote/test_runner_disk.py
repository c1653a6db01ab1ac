"""A disk that is full keeps nobody from stopping a job, and costs no leg its place."""

import os
import subprocess

import pytest

from tipcflow.remote.runner import files, processes

pytestmark = [pytest.mark.process, pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")]


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
    small.ask("start", job)
    wait(lambda: os.statvfs(job).f_bavail == 0, "a full disk")
    if how == "stop":
        small.ask("stop", job, "over")
    else:
        assert small.ask("reap", small.workspace, "--living")["left"] == []
    assert small.ended(job).reason.value == "stopped"
    assert not small.ours()


def test_not_even_an_empty_file(tmp_path, monkeypatch):
    """Then its runner gets TERM, if it lives."""
    sent = []
    (tmp_path / "lock").write_text("4711")
    monkeypatch.setattr(files, "save", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    monkeypatch.setattr(files, "locked", lambda _: True)
    monkeypatch.setattr(files.os, "kill", lambda *words: sent.append(words))
    (tmp_path / "stop").mkdir()
    files.ask_to_stop(str(tmp_path), "over")
    assert sent == [(4711, files.signal.SIGTERM)]


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
