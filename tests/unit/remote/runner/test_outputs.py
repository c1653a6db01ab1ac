"""Expected outputs and artefacts: there, fresh, hashed, and no launcher file that holds secrets."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import time

import pytest
from tests.support.no_privilege import WITHOUT_PRIVILEGE

from tipcflow.domain import JobCommand
from tipcflow.remote.runner.outputs import examine, is_secret

pytestmark = pytest.mark.process


def test_outputs_are_missing_fresh_or_stale(bench):
    (bench.root / "old.log").write_text("an older run's")
    os.utime(bench.root / "old.log", (time.time() - 100,) * 2)
    expects = ("model/best.pdparams", "old.log", "never", "*.json")
    text = "mkdir model; printf weights > model/best.pdparams; touch a.json b.json"
    record = bench.end_of(text, expects=expects)
    found = {output.path: output for output in record.outputs}
    assert sorted(found) == ["a.json", "b.json", "model/best.pdparams", "never", "old.log"]
    best = found["model/best.pdparams"]
    assert (best.exists, best.fresh, best.size) == (True, True, 7)
    assert best.sha256 == hashlib.sha256(b"weights").hexdigest()
    assert (found["old.log"].exists, found["old.log"].fresh) == (True, False)
    assert not found["never"].exists
    assert (record.exit_code, record.ok) == (0, False)


def test_a_pattern_that_matches_nothing_is_missing(bench):
    record = bench.end_of("true", expects=("out/*.pdmodel",))
    assert [(output.path, output.exists) for output in record.outputs] == [("out/*.pdmodel", False)]
    assert not record.ok


def test_written_at_once_is_fresh(bench):
    """The kernel stamps files by a clock that may be some milliseconds behind ours."""
    assert bench.end_of("> first", expects=("first",)).ok


def test_whole_second_file_systems_get_that_second(tmp_path):
    file = tmp_path / "file"
    file.touch()
    since = 1_700_000_000 * 10**9 + 5
    for stamp, fresh in [(since - 5, True), (since - 1, False), (since, True), (since - 10**9 - 5, False)]:
        os.utime(file, ns=(stamp, stamp))
        assert examine(str(tmp_path), "file", since)["fresh"] is fresh, stamp


def test_output_readable_only_by_another_user_exists(tmp_path):
    file = tmp_path / "file"
    file.write_text("1234")
    file.chmod(0)
    ask = "import json, sys; from tipcflow.remote.runner.outputs import examine; "
    ask += "print(json.dumps(examine(sys.argv[1], 'file', 0)))"
    argv = [*WITHOUT_PRIVILEGE, sys.executable, "-c", ask, str(tmp_path)]
    report = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert report == {"path": "file", "exists": True, "fresh": True, "size": 4, "sha256": ""}


def test_artefacts_are_listed_without_the_launchers_environment(bench):
    names = "workerlog.0 envlog.0 backup_env.0.json default.abcdef.log default.gpu.log job.xyzabc.log"
    job = bench.job(f"mkdir -p log && cd log && touch {names}", artefacts=("log", "*.txt"))
    bench.call("start", job)
    bench.ended(job)
    assert [file["path"] for file in bench.call("poll", job)["artefacts"]] == [
        "log/default.gpu.log",
        "log/workerlog.0",
    ]


def test_names_of_secret_files_are_recognized():
    assert is_secret("a/envlog.0")
    assert is_secret("backup_env.1.json")
    assert is_secret("a/default.kqzvbd.log")
    assert not is_secret("a/workerlog.0")
    assert not is_secret("rank.000001.log")
    assert not is_secret("default.gpu.log")
    assert not is_secret("envlog.0/train.log")


def test_log_gets_the_suites_name_too(bench):
    (bench.root / "output").mkdir()
    (bench.root / "output" / "train.log").write_text("stale: epoch 200")
    command = JobCommand(
        text="echo fresh; grep -c stale output/train.log; echo done", cwd=".", log="output/train.log"
    )
    job = bench.job("true", commands=(command,), expects=("output/train.log",))
    bench.call("start", job)
    record = bench.ended(job)
    assert record.ok
    assert (bench.root / "output" / "train.log").read_text() == "fresh\n0\ndone\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("best.pdparams", pickle.dumps({"w": [1.0] * 5000}, 4), ""),
        ("best.pdparams", pickle.dumps({"w": [1.0] * 5000}, 4)[:-100], "cut off: it is a pickle"),
        ("best.pdparams", b"plain text is not weights", ""),
        ("inference.pdiparams", bytes(100_000), "only zero bytes"),
        ("inference.pdiparams", bytes(90_000) + b"\1", ""),
        ("best.pt", b"PK\3\4" + b"1" * 90_000 + b"PK\5\6" + bytes(18), ""),
        ("best.pt", b"PK\3\4" + b"1" * 90_000, "cut off: it is an archive"),
    ],
)
def test_damaged_outputs_are_reported(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    report = examine(str(tmp_path), name, 0).get("damage", "")
    assert bool(report) is bool(words)
    assert words in report
