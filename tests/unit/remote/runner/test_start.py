"""Starting: exactly once, after the locks are held; and every reason to refuse."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.remote.conftest import BOTH, Bench

from tipcflow.domain import EndReason, ExitRecord, FailureClass, Status
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.outcome import status_of

pytestmark = [pytest.mark.process, BOTH]


def test_start_returns_when_the_job_runs_and_attaches_afterwards(bench):
    job = bench.job("echo begun >> begun; sleep 300")
    first = bench.call("start", job)
    assert first["state"] == "running"
    again = bench.call("start", job)
    assert (again["state"], again["pid"]) == ("running", first["pid"])
    bench.call("stop", job, "over")
    record = bench.ended(job)
    after = bench.call("start", job)
    assert (after["state"], after["record"]["message"]) == ("ended", "over")
    assert ExitRecord.model_validate(after["record"]) == record
    assert (bench.root / "begun").read_text() == "begun\n"


def test_many_starts_at_once_start_one_job(bench):
    job = bench.job("echo begun >> begun; sleep 0.5")
    starts = [bench.popen("start", job) for _ in range(6)]
    report = [json.loads(start.communicate(timeout=60)[0]) for start in starts]
    assert len({one["pid"] for one in report}) == 1
    assert {one["state"] for one in report} <= {"running", "ended"}
    assert bench.ended(job).ok
    assert (bench.root / "begun").read_text() == "begun\n"


def test_job_survives_the_end_of_the_starting_session(bench):
    """As when the connection breaks right after the start: the job is in a session of its own."""
    job = bench.job("sleep 0.5; touch done")
    argv = [bench.node.python, "-I", "-S", str(bench.runner), "start", str(job)]
    shell = subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True)
    shell.communicate(timeout=30)
    with pytest.raises(ProcessLookupError):
        os.killpg(shell.pid, signal.SIGKILL)
    assert bench.ended(job).ok
    assert (bench.root / "done").exists()


def test_commands_do_not_read_the_files_of_login_shells(bench, tmp_path, monkeypatch):
    (tmp_path / ".bashrc").write_text("export PATH=/of/a/login:$PATH\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    # As in a session of sshd, in which Bash reads ~/.bashrc for `bash -c`.
    monkeypatch.setenv("SSH_CLIENT", "192.168.0.1 40000 22")
    monkeypatch.delenv("SHLVL", raising=False)
    job = bench.job('echo "$PATH" > path')
    bench.call("start", job)
    bench.ended(job)
    assert "/of/a/login" not in (bench.root / "path").read_text()


def test_a_missing_description_starts_nothing(bench, tmp_path):
    report = bench.call("start", tmp_path)
    assert report["state"] == "absent"
    assert report["message"] == f"{tmp_path}/job.json is missing or not JSON"


def test_slot_remembers_the_newest_lease(bench):
    assert bench.end_of("true", step="new", slots=(0, 1), fence=7).ok
    old = bench.job("touch ran", step="old", slots=(1,), fence=6)
    report = bench.call("start", old)
    assert report["state"] == "ended"
    record = bench.ended(old)
    assert record.reason is EndReason.REFUSED
    assert record.message == (
        "slot 1 of a has seen lease 7 (of r1/new/1); this job has the older lease 6; "
        "start the run again to acquire a newer lease"
    )
    assert bench.end_of("true", step="same", slots=(1,), fence=7).ok
    assert not (bench.root / "ran").exists()


def test_busy_slot_is_refused_and_names_its_holder(bench):
    holder = bench.job("sleep 300", step="holder", slots=(0,))
    bench.call("start", holder)
    late = bench.job("touch ran", step="late", slots=(0,))
    report = bench.call("start", late)
    assert report["record"]["message"] == "slot 0 of a is held by r1/holder/1"
    assert bench.call("poll", late)["record"]["reason"] == "refused"
    bench.call("stop", holder, "over")
    bench.ended(holder)
    assert not (bench.root / "ran").exists()


def test_slot_of_an_ending_job_is_waited_for(bench):
    first = bench.job("sleep 1", step="first", slots=(0,))
    bench.call("start", first)
    assert bench.end_of("true", step="second", slots=(0,)).ok


def test_a_dead_runners_leftovers_are_ended_before_its_slot_is_used_again(bench, wait):
    first = bench.job("touch begun; sleep 301", step="first", slots=(0,))
    pid = bench.call("start", first)["pid"]
    # A runner that is killed before its command starts leaves nothing.
    wait((bench.root / "begun").exists, "begun")
    bench.kill_runner(pid)
    wait(lambda: bench.call("poll", first)["state"] == "lost", "lost")
    wait(bench.ours, "leftovers")
    second = bench.job("true", step="second", slots=(0,))
    bench.call("start", second)
    assert bench.ended(second).ok  # which waits until nothing of ours is left


def test_lost_job_is_not_started_again(bench, wait):
    job = bench.job("echo begun >> begun; sleep 302")
    os.kill(bench.call("start", job)["pid"], signal.SIGKILL)
    report = wait(lambda: (t := bench.call("poll", job))["state"] == "lost" and t, "lost")
    assert report["record"] is None
    assert bench.call("start", job)["state"] == "lost"
    bench.call("reap", bench.workspace)
    assert not bench.ours()


def test_python_may_lack_ctypes(bench):
    """Orphans are found by their marks alone then, and facts know a little less."""
    bench.call("list", bench.workspace)  # which unpacks the modules
    (bench.runner.with_suffix("") / "ctypes.py").write_text("raise ImportError('no _ctypes')")
    job = bench.job("bash -c 'sleep 300 & kill -9 $$'; exit 5")
    bench.call("start", job)
    record = bench.ended(job)
    assert (record.exit_code, record.killed) == (5, 1)
    assert "orphans cannot be adopted: no _ctypes" in (job / "runner.log").read_text()
    assert bench.call("facts", bench.workspace)["hostname"]


def test_too_little_room_is_refused(bench):
    record = bench.end_of("touch ran", min_free_bytes=1 << 60)
    assert record.reason is EndReason.REFUSED
    assert f"{bench.workspace} has " in record.message
    assert record.message.endswith(f" bytes free, the step needs {1 << 60}")
    assert record.disk_full


def test_impossible_cpus_are_refused(bench):
    assert "cannot use the CPUs '4095'" in bench.end_of("true", cpus="4095").message
    assert "cannot use the CPUs 'x'" in bench.end_of("true", cpus="x", step="two").message


def test_cpus_bind_the_commands(bench):
    job = bench.job("taskset -cp $$", cpus="0")
    bench.call("start", job)
    bench.ended(job)
    assert (job / "logs/main.log").read_text().strip().endswith(": 0")


@pytest.mark.root
class TestFullDisk:
    """A job folder on a tiny file system."""

    @pytest.fixture
    def tiny(self, bench):
        place = Path(bench.workspace) / "jobs"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
        yield place
        bench.close()
        subprocess.run(["umount", "-l", str(place)], check=True)

    def fill(self, place):
        subprocess.run(["dd", "if=/dev/zero", f"of={place}/filler", "bs=4k"], capture_output=True, check=False)

    def test_full_before_the_start_is_refused_on_stdout(self, bench, tiny):
        job = bench.job("true", min_free_bytes=0)
        self.fill(tiny)
        report = bench.call("start", job)
        assert report["state"] == "ended"
        assert report["record"]["reason"] == "refused"
        assert "No space left on device" in report["record"]["message"]
        (tiny / "filler").unlink()
        assert bench.call("start", job)["state"] in ("running", "ended")  # nothing had been started
        assert bench.ended(job).ok

    def test_full_during_the_job_still_leaves_every_record(self, bench, tiny):
        text = "dd if=/dev/zero of=../../../jobs/filler bs=4k 2>/dev/null; echo said; exit 5"
        job = bench.job(text, "exit 6", legs=True, keep_going=True)
        bench.call("start", job)
        record = bench.ended(job)
        assert (record.reason, record.exit_code) == (EndReason.EXITED, 5)
        report = bench.call("poll", job)
        assert [leg["exit_code"] for leg in report["legs"]] == [5, 6]


# Also as root, whom permissions of files do not concern otherwise.
PLAIN_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def response_of(bench: Bench, *words: object, sent: str = "") -> dict[str, Any]:
    """The runner's response to `start` or `begin`."""
    argv = [*PLAIN_USER, bench.node.python, "-I", "-S", "-X", "utf8", str(bench.runner), *map(str, words)]
    done = subprocess.run(argv, input=sent.encode(), capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    response: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return response


def refused(response: dict[str, Any]) -> ExitRecord:
    assert response["state"] == "ended"
    record = ExitRecord.model_validate(response["record"])
    assert record.reason is EndReason.REFUSED
    assert status_of(record)[0] is Status.INFRA_FAILURE
    return record


@pytest.mark.root
@pytest.mark.parametrize("subcommand", ["start", "begin"])
def test_a_full_disk_is_the_class_disk(bench: Bench, subcommand: str) -> None:
    folder = bench.workspace / "jobs"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=True)
    try:
        job = bench.job("true")
        text = (job / "job.json").read_text()
        if subcommand == "begin":
            (job / "job.json").unlink()
        with (folder / "fill").open("wb") as fill:
            fill.write(b"x" * (os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize))
        record = refused(response_of(bench, subcommand, job, sent=text))
        assert (record.errno, class_of(record, LogDiagnosis())) == ("ENOSPC", FailureClass.DISK)
    finally:
        bench.close()
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("subcommand", ["start", "begin"])
def test_a_missing_permission_is_an_unready_node(bench: Bench, subcommand: str) -> None:
    job = bench.job("true")
    text = (job / "job.json").read_text()
    if subcommand == "begin":
        (job / "job.json").unlink()
    job.chmod(0o500)
    try:
        record = refused(response_of(bench, subcommand, job, sent=text))
    finally:
        job.chmod(0o700)
    assert (record.errno, class_of(record, LogDiagnosis())) == ("EACCES", FailureClass.NODE_UNREADY)
    assert "Permission denied" in record.message


def test_a_missing_interpreter_is_the_environment(bench: Bench) -> None:
    bench.runner.write_bytes(bench.runner.read_bytes().replace(b'"/bin/bash"', b'"/nowhere/bash"'))
    record = bench.end_of("true")
    assert (record.reason, record.errno, record.interpreter) == (EndReason.REFUSED, "ENOENT", "/nowhere/bash")
    assert class_of(record, LogDiagnosis()) is FailureClass.ENVIRONMENT


def test_a_missing_folder_is_an_unready_node(bench: Bench) -> None:
    bench.root.rmdir()
    record = bench.end_of("true", workspace=str(bench.workspace), root=str(bench.root))
    assert (record.reason, record.errno, record.interpreter) == (EndReason.REFUSED, "ENOENT", "")
    assert class_of(record, LogDiagnosis()) is FailureClass.NODE_UNREADY


def test_a_busy_slot_has_no_error_of_the_operating_system(bench: Bench) -> None:
    holder = bench.job("sleep 300", step="holder", slots=(0,))
    bench.call("start", holder)
    record = refused(response_of(bench, "start", bench.job("true", step="late", slots=(0,))))
    assert (record.errno, class_of(record, LogDiagnosis())) == ("", FailureClass.NODE_UNREADY)
    bench.call("stop", holder, "over")
    bench.ended(holder)
