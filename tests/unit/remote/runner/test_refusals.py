"""Why a runner refuses a job, from the operating system's error to the failure class."""

import json
import os
import subprocess
from typing import Any

import pytest
from tests.unit.remote.conftest import Bench

from tipcflow.domain import EndReason, ExitRecord, FailureClass, Status
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.outcome import status_of

pytestmark = pytest.mark.process

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
