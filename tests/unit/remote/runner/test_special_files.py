"""FIFOs, sockets, devices and links to them in the place of files: the runner never opens them."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tipcflow.remote.runner import files

pytestmark = pytest.mark.process
SOCKET = "import socket; socket.socket(socket.AF_UNIX).bind('log/socket')"
OURS = pytest.mark.parametrize("bench", ["ours"], indirect=True)


def test_special_files_among_artefacts_are_listed_but_not_read(bench):
    make = (
        f'mkdir log; mkfifo log/fifo; ln -s /dev/zero log/zero; {sys.executable} -c "{SOCKET}"; echo 1 > log/file'
        "; ln -s file log/workerlog.0; ln -s nowhere log/workerlog.1; ln -s file log/best"
    )
    job = bench.job(make, artefacts=("log",))
    bench.call("start", job)
    assert bench.ended(job).ok
    listed = {one["path"]: one for one in json.loads((job / "artefacts.json").read_text())}
    assert {path: one.get("skipped", "") for path, one in listed.items()} == {
        "log/fifo": "not a regular file (FIFO)",
        "log/zero": "not a regular file (device)",
        "log/socket": "not a regular file (socket)",
        "log/file": "",
        "log/best": "",
        "log/workerlog.0": "not a regular file (link)",
        "log/workerlog.1": "not a regular file (link)",
    }
    assert all(one["fresh"] for one in listed.values()), "an old target does not make a link an earlier log"
    assert listed["log/fifo"]["exists"]
    assert listed["log/fifo"]["sha256"] == ""


@OURS
@pytest.mark.parametrize("make", ["mkfifo weights", "ln -s /dev/zero weights"])
def test_expected_output_must_be_a_regular_file(bench, make):
    record = bench.end_of(make, expects=("weights",))
    assert [(one.path, one.exists) for one in record.outputs] == [("weights", False)]
    assert "weights is not a regular file" in record.message
    assert not record.ok


@OURS
@pytest.mark.parametrize("make", ["mkfifo", "ln -s /dev/zero"])
def test_special_file_as_worker_log_delays_neither_runner_nor_evidence(bench, wait, make):
    job = bench.job(f"mkdir log; {make} log/workerlog.0; echo up; sleep 300", progress=("log/workerlog.*",))
    bench.call("start", job)
    wait(lambda: (bench.root / "log/workerlog.0").is_symlink() or (bench.root / "log/workerlog.0").exists(), "log")
    time.sleep(2.5)  # the runner looks for logs once a second
    before = heartbeat(job)["up"]
    wait(lambda: heartbeat(job)["up"] > before, "a heartbeat", 5)
    assert bench.call("evidence", job)["complete"]
    bench.call("stop", job, "over")
    assert bench.ended(job).message == "over"


@OURS
@pytest.mark.parametrize("put", ["mkfifo", "ln -s ../old"])
def test_replaced_worker_log_is_neither_silence_nor_progress(bench, wait, put):
    text = "echo iter: 99 > old; mkdir log; for i in 1 2 3; do echo iter: $i >> log/workerlog.0; sleep 1.2; done"
    text += f"; rm log/workerlog.0; {put} log/workerlog.0; for i in 1 2 3 4 5 6; do echo line; sleep 1; done"
    job = bench.job(text, progress=("log/workerlog.*",), hang_s=2.5)
    bench.call("start", job)
    wait(lambda: "log/workerlog.0" in heartbeat(job)["progress"], "its progress")
    record = bench.ended(job)
    assert record.ok, record.message
    assert list(heartbeat(job)["progress"]) == ["logs/main.log"]


@OURS
def test_special_files_in_the_job_folder_do_not_block(bench, wait):
    """What a careless command does to its own log and to the runner's files is seen, not waited for."""
    job = bench.job("echo up; sleep 2; echo later >> $PWD/../../../own; sleep 300")
    bench.call("start", job)
    wait(lambda: bench.log(job) == "up\n", "the log")
    for name in ("logs/main.log", "samples.jsonl", "lease", "artefacts.json"):
        (job / name).unlink(missing_ok=True)
        os.mkfifo(job / name)
    watch = bench.popen("watch", job, "--for", "2")
    out, err = watch.communicate(timeout=20)
    assert watch.returncode == 0, err
    assert "alive" in {json.loads(line)["event"] for line in out.splitlines()}
    assert bench.call("poll", job)["state"] == "running"
    bench.call("stop", job, "over")
    assert bench.ended(job).message == "over"


@OURS
def test_stopped_runner_is_detected_by_the_age_of_its_heartbeat(bench, wait):
    job = bench.job("while :; do echo line; sleep 0.1; done")
    pid = bench.call("start", job)["pid"]
    wait(lambda: (job / "logs/main.log").exists(), "the log")
    os.kill(pid, signal.SIGSTOP)
    try:
        out, _ = bench.popen("watch", job, "--for", "6").communicate(timeout=30)
    finally:
        os.kill(pid, signal.SIGCONT)
    ages = [event["age_s"] for event in map(json.loads, out.splitlines()) if event["event"] == "alive"]
    assert ages
    assert 3 < max(ages) < 10
    bench.call("stop", job, "over")
    bench.ended(job)


def test_only_regular_files_are_opened_for_reading(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_text("text")
    for name in ("fifo", ".", "/dev/zero"):
        with pytest.raises(OSError, match="not a regular file"):
            files.open_regular(str(tmp_path / name))
    with files.open_regular(str(tmp_path / "link")) as handle:
        assert handle.read() == b"text"
    with pytest.raises(OSError, match="link"):
        files.open_regular(str(tmp_path / "link"), follow=False)
    with pytest.raises(OSError, match="fifo"):
        files.open_append(str(tmp_path / "fifo"))


def heartbeat(job: Path):
    """The last one."""
    return json.loads((job / "heartbeat.json").read_text())
