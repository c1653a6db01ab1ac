"""What the runner cannot provide for a run is a field of the exit record, and none of it the model's error."""

import errno
import hashlib
import os
import shlex
import subprocess
import tarfile
import venv
from pathlib import Path

import pytest
from tests.unit.execute.failure.test_root_cause import member

from tipcflow.domain import ExitRecord, FailureClass, JobCommand, Status, UnmetNeed
from tipcflow.domain.run.failure import OF_NEED
from tipcflow.execute.failure.diagnosis import diagnose_logs
from tipcflow.execute.failure.outcome import Outcome, step_outcome
from tipcflow.remote.runner.unmet import AGENT, EXIT_CODES, NODE, failure_of, unmet_need

NO_INDEX = {"PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "1"}


@pytest.fixture(scope="module")
def own_python(tmp_path_factory):
    """An interpreter with pip, as of a node."""
    folder = tmp_path_factory.mktemp("node") / "env"
    venv.create(folder, symlinks=True, with_pip=True)
    return str(folder / "bin" / "python")


def end_of(bench, words, *, python="", env=None, attempt=1):
    """The exit record and the log of a step that runs the runner with these words."""
    python = python or bench.node.python
    text = f'{shlex.quote(python)} -I "${AGENT}" {shlex.join(map(str, words))}'
    command = JobCommand(text=text, cwd=".", env={AGENT: str(bench.runner), **(env or {})})
    job = bench.job(commands=(command,), step="data", attempt=attempt)
    bench.call("start", job)
    return bench.ended(job), bench.log(job)


def outcome_of(record: ExitRecord, log: str) -> Outcome:
    """As the controller evaluates the step."""
    evaluated = member("a")
    evaluated.record = record
    return step_outcome([evaluated], {"a": diagnose_logs(log, {}, unmet=record.unmet)}, cancelled=False)


def data(bench, source, *words):
    """Arguments of the runner that put a source into the folder `dataset` of the run."""
    return ["data", "dataset", source, bench.workspace / "cache", *words]


def tar_of(folder: Path, *names: str) -> tuple[Path, str]:
    """An archive with these files, and its hash."""
    archive = folder / "data.tar"
    with tarfile.open(archive, "w") as tar:
        for name in names:
            (folder / name).write_text(name)
            tar.add(folder / name, arcname=name)
    return archive, hashlib.sha256(archive.read_bytes()).hexdigest()


@pytest.mark.process
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("/none.tar", "Download from /none.tar failed: /none.tar: No such file or directory"),
        ("http://127.0.0.1:9/x", "Download from http://127.0.0.1:9/x failed: <urlopen error"),
    ],
    ids=["path", "url"],
)
def test_source_that_cannot_be_fetched_is_a_failed_download(bench, source, reason):
    record, log = end_of(bench, data(bench, source, "--sha256", "0" * 64, "--unpack"))
    result = outcome_of(record, log)
    assert (record.unmet, record.exit_code) == (UnmetNeed.DOWNLOAD, 71)
    assert (result.status, result.failure.failure_class) == (Status.INFRA_FAILURE, FailureClass.DOWNLOAD)
    assert result.failure.log_line.startswith(reason)
    assert result.reason.startswith(f"a download failed on node a (exit code 71): {reason}")


@pytest.mark.process
@pytest.mark.parametrize("content", [b"not an archive\n" * 9, b"PK\x03\x04", b""], ids=["text", "zip", "empty"])
def test_broken_archive_is_a_failed_download_unless_its_hash_is_known(bench, tmp_path, content):
    archive = tmp_path / "data.tar"
    archive.write_bytes(content)
    record, log = end_of(bench, data(bench, archive, "--unpack"))
    result = outcome_of(record, log)
    assert (result.status, result.failure.failure_class) == (Status.INFRA_FAILURE, FailureClass.DOWNLOAD)
    assert f"{archive} cannot be unpacked: " in result.reason
    digest = hashlib.sha256(content).hexdigest()
    record, log = end_of(bench, data(bench, archive, "--unpack", "--sha256", digest), attempt=2)
    assert record.unmet is UnmetNeed.DATA
    assert outcome_of(record, log).failure.failure_class is FailureClass.DATA_MISSING


@pytest.mark.process
def test_data_that_would_replace_a_file_of_the_suite_do_not_fit(bench, tmp_path):
    archive, digest = tar_of(tmp_path, "val.txt")
    (bench.root / "dataset").mkdir()
    (bench.root / "dataset" / "val.txt").write_text("own")
    record, log = end_of(bench, data(bench, archive, "--unpack", "--sha256", digest))
    result = outcome_of(record, log)
    assert record.unmet is UnmetNeed.DATA
    assert result.failure.failure_class is FailureClass.DATA_MISSING
    reason = "dataset/val.txt is a file of the suite: the data of the suite file would replace it"
    assert result.reason.splitlines()[0] == f"a required file is missing on node a (exit code 73): {reason}"


@pytest.mark.process
def test_failed_pip_is_a_failure_of_the_environment(bench, tmp_path, own_python):
    words = ["environment", tmp_path / "run", tmp_path / "cache", '["toy==1.0"]']
    (tmp_path / "empty").mkdir()
    env = {**NO_INDEX, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "empty")}
    record, log = end_of(bench, words, python=own_python, env=env)
    result = outcome_of(record, log)
    assert record.unmet is UnmetNeed.ENVIRONMENT
    assert (result.status, result.failure.failure_class) == (Status.INFRA_FAILURE, FailureClass.ENVIRONMENT)
    assert "pip cannot install the packages of the suite file (toy==1.0): No matching" in result.reason


@pytest.mark.process
def test_unreachable_package_index_is_a_failed_download(bench, tmp_path, own_python):
    words = ["environment", tmp_path / "run", tmp_path / "cache", '["toy==1.0"]']
    env = {**NO_INDEX, "PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    record, log = end_of(bench, words, python=own_python, env=env)
    result = outcome_of(record, log)
    assert record.unmet is UnmetNeed.DOWNLOAD
    assert (result.status, result.failure.failure_class) == (Status.INFRA_FAILURE, FailureClass.DOWNLOAD)
    assert result.reason.endswith("the package index cannot be reached: Connection refused")


@pytest.mark.process
def test_error_of_the_runner_is_a_failure_of_the_node(bench):
    (bench.workspace / "cache").write_text("in the way")
    record, log = end_of(bench, data(bench, "/etc/hostname", "--unpack"))
    result = outcome_of(record, log)
    assert record.unmet is UnmetNeed.NODE
    assert (result.status, result.failure.failure_class) == (Status.INFRA_FAILURE, FailureClass.NODE_UNREADY)
    assert "data: NotADirectoryError: [Errno 20]" in result.reason


@pytest.mark.root
@pytest.mark.process
def test_archive_that_does_not_fit_on_the_disk_is_a_full_disk(bench, tmp_path):
    (tmp_path / "big").write_bytes(os.urandom(1 << 20))
    archive = tmp_path / "big.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tmp_path / "big", arcname="big")
    cache = bench.workspace / "cache"
    cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(cache)], check=True)
    try:
        record, log = end_of(bench, data(bench, archive, "--unpack"))
    finally:
        subprocess.run(["umount", str(cache)], check=True)
    assert record.unmet is UnmetNeed.DISK
    assert outcome_of(record, log).failure.failure_class is FailureClass.DISK


@pytest.mark.process
def test_exit_code_of_a_suite_has_no_meaning(bench):
    record = bench.end_of("echo no such column; exit 71")
    assert record.unmet is None
    assert outcome_of(record, "no such column\n").failure.failure_class is FailureClass.CODE_ERROR


def test_every_kind_has_an_exit_code_and_a_class():
    assert sorted(EXIT_CODES) == sorted(UnmetNeed) == sorted(OF_NEED)
    assert FailureClass.CODE_ERROR not in OF_NEED.values()
    assert [unmet_need({AGENT: "x"}, code) for code in EXIT_CODES.values()] == list(EXIT_CODES)
    assert unmet_need({AGENT: "x"}, 1) is unmet_need({}, EXIT_CODES[NODE]) is None


def test_full_disk_precedes_the_other_kinds():
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert failure_of(full, NODE) == failure_of(f"cannot copy: {full}", NODE) == "disk"
    assert failure_of(OSError(errno.EACCES, "Permission denied"), NODE) == NODE
