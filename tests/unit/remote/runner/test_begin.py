"""`begin`: a job is described, started and watched in one call, and its small files come along with its end."""

import base64
import json
import os
import signal
import subprocess

import pytest

from tipcflow.domain import EndReason, ExitRecord
from tipcflow.remote.runner.inline_files import MAX_BYTES, pack_inline_files

pytestmark = pytest.mark.process


def begin(bench, job, described="", *words):
    """All events of one call."""
    argv = [bench.node.python, "-I", "-S", "-X", "utf8", str(bench.runner), "begin", str(job), *words]
    done = subprocess.run(argv, input=described.encode(), capture_output=True, timeout=90, check=False)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def described(bench, *texts, **values):
    """A job's folder, which is not there yet, and its description."""
    job = bench.job(*texts, **values)
    text = (job / "job.json").read_text()
    (job / "job.json").unlink()
    job.rmdir()
    return job, text


def test_begin_describes_starts_and_watches_in_a_single_call(bench):
    job, text = described(bench, "echo one; echo two > made", artefacts=("made",))
    report = begin(bench, job, text, "--files")
    assert (report[0]["event"], report[0]["state"]) == ("response", "running")
    assert "".join(one["data"] for one in report if one["event"] == "log") == "one\n"
    assert [one["event"] for one in report[-2:]] == ["files", "end"]
    assert report[-1]["record"]["exit_code"] == 0
    files = {name: file and base64.b64decode(file[1]) for name, file in report[-2]["job"].items()}
    assert files["logs/main.log"] == b"one\n"
    assert files["exit.json"] == (job / "exit.json").read_bytes()
    assert files["evidence.json"] is None
    assert base64.b64decode(report[-2]["root"]["made"][1]) == b"two\n"
    assert (job.stat().st_mode & 0o777, (job / "job.json").stat().st_mode & 0o777) == (0o700, 0o644)
    bench.ended(job)


def test_second_call_keeps_the_first_description_of_the_job(bench):
    job, text = described(bench, "echo begun >> begun")
    begin(bench, job, text)
    report = begin(bench, job, text.replace("echo begun", "echo again"))
    assert (report[0]["event"], report[0]["state"], report[-1]["event"]) == ("response", "ended", "end")
    assert "files" not in {one["event"] for one in report}
    assert (job / "job.json").read_text() == text
    assert (bench.root / "begun").read_text() == "begun\n"


def test_job_of_a_dead_runner_is_lost_despite_a_concurrent_poll(bench):
    """A poll holds the job's lock for a moment; a second poll must not mistake it for a running runner."""
    job, text = described(bench, "sleep 300")
    report = begin(bench, job, text, "--for", "0")
    os.kill(report[0]["pid"], signal.SIGKILL)
    bench.close()
    report = begin(bench, job, text, "--for", "30")
    assert (report[0]["state"], report[-1]["event"]) == ("lost", "lost")


def test_a_folder_that_cannot_be_created_is_reported(bench):
    job, text = described(bench, "true")
    job.parent.rmdir()
    job.parent.write_text("in the way")
    (report,) = begin(bench, job, text)
    record = ExitRecord.model_validate(report["record"])
    assert (report["state"], record.reason, record.errno) == ("ended", EndReason.REFUSED, "ENOTDIR")
    assert record.message == f"cannot write {job}/job.json: Not a directory"


def test_inline_files_are_small_regular_and_without_secrets(bench):
    job = bench.job("true", artefacts=("*",))
    spec = json.loads((job / "job.json").read_text())
    names = ("small", "link", "envlog.0", "gone", "large", "next")
    for name in ("small", "envlog.0", "next"):
        (bench.root / name).write_text(name)
    (bench.root / "link").symlink_to(bench.root / "small")
    (bench.root / "large").write_bytes(b"x" * MAX_BYTES)
    listed = [{"path": name, "exists": True, "fresh": True} for name in names]
    (job / "artefacts.json").write_text(json.dumps([*listed, {"path": "old", "exists": True, "fresh": False}]))
    (bench.root / "old").write_text("old")
    packed = pack_inline_files(str(job), spec)
    assert {name: file and base64.b64decode(file[1]) for name, file in packed["root"].items()} == {
        "small": b"small",
        "gone": None,
        "next": b"next",
    }
    assert packed["job"]["exit.json"] is None
