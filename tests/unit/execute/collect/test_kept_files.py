"""Files kept by closers are in the database: a machine without a file reports it, and certifies the same list."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import T0, TRAIN, a_plan, a_run, open_store
from tests.support.two_nodes import NODES, stored

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import Status
from tipcflow.execute.collect.kept_files import SIGNATURE, hashes_in, kept_files, record_kept
from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.execute.collect.store_files import note_lost_files
from tipcflow.execute.verdict import judge as judgement
from tipcflow.report import verify
from tipcflow.store import Store

RULES, REFERENCES = Policy(name="mine"), References(suite="sample")
LOG = "node-a/logs/main.log"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


def written(folder: Path, text: str = "loss 1.0\n") -> Path:
    """A step's folder with a log, as a closer leaves it."""
    log = folder / LOG
    log.parent.mkdir(parents=True)
    log.write_text(text)
    (folder / ".attempt").write_text("1")
    return folder


def judged(store: Store, run: str) -> tuple[Status, str]:
    result = judgement.judge_run(store, run, rules=RULES, references=REFERENCES)
    store.runs.finish(run, result.status, result.reason, T0 + 50)
    return result.status, result.reason


def test_files_of_another_workers_folder_are_missing_and_reported(store: Store, tmp_path: Path) -> None:
    run = stored(store, 0, lambda _: 1.0, NODES)
    step = store.plans.get(run).steps[0].id
    ours, theirs = tmp_path / "worker-1", tmp_path / "worker-2"
    record_kept(store, run, step, 1, written(ours / "runs" / run / step))
    for home, status in ((ours, Status.PASS), (theirs, Status.INFRA_FAILURE)):
        note_lost_files(store, run, home)
        found, reason = judged(store, run)
        assert found is status, reason
        made = json.loads(judgement.write_certificate(store, run, home).read_text())
        assert list(made["files"]) == [f"{step}/{LOG}"], "the same list on both machines"
        assert verify(made) == []
    assert reason == (
        f"ran.files: 1 of 1 fetched files are not on this machine: {step}/{LOG}; "
        "all workers must share one TIPCFLOW_HOME, or use one TIPCFLOW_STORE"
    )
    assert verify(made, files={}) == [f"file {step}/{LOG} is missing"]


def test_a_file_that_was_changed_after_its_step_is_reported(store: Store, tmp_path: Path) -> None:
    run = stored(store, 0, lambda _: 1.0, NODES)
    step = store.plans.get(run).steps[0].id
    folder = written(tmp_path / "runs" / run / step)
    record_kept(store, run, step, 1, folder)
    (folder / LOG).write_text("loss 0.1\n")
    note_lost_files(store, run, tmp_path)
    assert judged(store, run) == (
        Status.INFRA_FAILURE,
        f"ran.files: 1 fetched file was changed after the step: {step}/{LOG}",
    )
    made = json.loads(judgement.write_certificate(store, run, tmp_path).read_text())
    assert verify(made, files={f"{step}/{LOG}": hashes_in(folder)[LOG]}) == [f"file {step}/{LOG} was changed"]


def test_a_compressed_log_is_the_same_file(store: Store, tmp_path: Path) -> None:
    run = stored(store, 0, lambda _: 1.0, NODES)
    step = store.plans.get(run).steps[0].id
    folder = written(tmp_path / "runs" / run / step, "loss 1.0\n" * 20_000)
    record_kept(store, run, step, 1, folder)
    assert compress_logs(folder.parent) == 1
    lost = note_lost_files(store, run, tmp_path)
    assert (lost.missing, lost.changed, lost.kept) == ((), (), 1)


def test_an_earlier_attempt_has_its_own_folder(store: Store, tmp_path: Path) -> None:
    store.runs.create(a_run(), a_plan())
    run = a_run().id
    for number in (1, 2):
        attempt = store.attempts.open(run, TRAIN, ["node-a"], T0 + number)
        record_kept(store, run, TRAIN, attempt, written(tmp_path / str(number), f"attempt {number}\n"))
        store.attempts.close(run, TRAIN, attempt, Status.FAILED, "exit code 1", [], T0 + number)
    names = {sha256: name for name, sha256 in kept_files(store, run).items()}
    first, second = (names[hashes_in(tmp_path / str(number))[LOG]] for number in (1, 2))
    assert first.removesuffix(f"/{LOG}") == second.removesuffix(f"/{LOG}") + "~1"


def test_only_files_of_nodes_count(tmp_path: Path) -> None:
    folder = written(tmp_path / "run" / "step").parent
    for own in ("certificate.json", "events.jsonl", SIGNATURE):
        (folder / own).write_text("{}")
    assert list(hashes_in(folder)) == [f"step/{LOG}"]


@pytest.mark.parametrize("data", [b"no gzip", gzip.compress(b"loss 1.0" * 999, mtime=0)[:-9]])
def test_file_named_like_a_compressed_log_is_hashed_unchanged(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "train.log.gz").write_bytes(data)
    assert hashes_in(tmp_path) == {"train.log": hashlib.sha256(data).hexdigest()}


def test_late_fetch_on_another_machine_keeps_recorded_hashes(store: Store, tmp_path: Path) -> None:
    """The other machine has only the file that it fetched."""
    run = stored(store, 0, lambda _: 1.0, NODES)
    step = store.plans.get(run).steps[0].id
    folder = written(tmp_path / "here" / "runs" / run / step)
    record_kept(store, run, step, 1, folder)
    there = tmp_path / "there" / "runs" / run / step
    (there / "node-b").mkdir(parents=True)
    (there / "node-b" / "late.log").write_text("loss 2.0\n")
    record_kept(store, run, step, 1, there, late=True)
    assert set(kept_files(store, run)) == {f"{step}/{LOG}", f"{step}/node-b/late.log"}
    assert kept_files(store, run)[f"{step}/{LOG}"] == hashes_in(folder)[LOG]
