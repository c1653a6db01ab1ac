"""A job of a user without a writable control group, on a node with systemd."""

import shutil
import time
from pathlib import Path

import pytest
from tests.unit.remote.conftest import Bench
from tests.unit.remote.service_manager import USER, ServiceManager

from tipcflow.domain import EndReason, ExitRecord

pytestmark = [pytest.mark.process, pytest.mark.full]

# A process with another session, parent and environment than the job's.
ESCAPED = """/usr/bin/python3 -c "import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve('/bin/sleep', ['sleep', '777'], {})
    os._exit(0)
time.sleep(600)" """


def test_job_runs_in_a_scope_of_the_user(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "node", "/usr/bin/python3")
    job = bench.job(ESCAPED)
    for path in [bench.workspace, *bench.workspace.rglob("*")]:
        shutil.chown(path, USER)
    argv = ["/usr/bin/python3", "-I", "-S", "-X", "utf8", bench.runner]
    with ServiceManager(tmp_path / "node") as manager:
        manager.run(*argv, "start", job)
        group = (job / "cgroup").read_text()
        assert f"/user@{USER}.service/" in group
        assert "/tipcflow-" in group
        manager.run(
            "bash",
            "-c",
            f"until pgrep -x sleep; do sleep 0.05; done; grep -x $(pgrep -x sleep) {group}/cgroup.procs",
        )
        (job / "processes.json").unlink()  # the group alone must find the process
        manager.run(*argv, "stop", job, "over")
        end = time.monotonic() + 20
        while not (job / "exit.json").exists() and time.monotonic() < end:
            time.sleep(0.05)
        record = ExitRecord.model_validate_json((job / "exit.json").read_text())
        assert record.reason is EndReason.STOPPED
        manager.run("bash", "-c", f"! pgrep -x sleep && until [ ! -e {group} ]; do sleep 0.05; done")
