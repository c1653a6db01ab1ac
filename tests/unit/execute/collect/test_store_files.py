"""Fetched files in the object store: two machines with folders of their own, and everything that can go wrong."""

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, open_store
from tests.support.two_nodes import NODES, stored

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.kept_files import LostFilesDocument, StoredDocument
from tipcflow.execute.collect.kept_files import record_kept
from tipcflow.execute.collect.log_archive import LEAST, open_kept
from tipcflow.execute.collect.run_files import RunFiles
from tipcflow.execute.collect.store_files import note_lost_files, store_files
from tipcflow.execute.objects import deadline, object_store
from tipcflow.execute.verdict import judge as judgement
from tipcflow.report import verify
from tipcflow.store import Store

pytestmark = pytest.mark.slow

RULES, REFERENCES = Policy(name="mine"), References(suite="sample")
LOG, LARGE, WEIGHTS = "node-a/logs/main.log", "node-a/logs/large.log", "node-b/files/model.pdparams"
TEXT = "loss 1.0\n" * (LEAST // 9 + 1)


class Site:
    """A run with one attempt, whose files worker 1 has fetched; worker 2 shares only database and object store."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.root = store, folder / "objects"
        self.root.mkdir()
        self.run = stored(store, 0, lambda _: 1.0, NODES)
        self.step = store.plans.get(self.run).steps[0].id
        self.first, self.second = folder / "worker-1", folder / "worker-2"
        self.key = AttemptKey(self.step, 1)
        self.place = self.first / "runs" / self.run / self.step
        for name, text in {LOG: "started\n", LARGE: TEXT, WEIGHTS: "weights"}.items():
            (self.place / name).parent.mkdir(parents=True, exist_ok=True)
            (self.place / name).write_text(text)
        (self.place / ".attempt").write_text("1")

    def close(self) -> str:
        record_kept(self.store, self.run, self.step, 1, self.place)
        return store_files(self.store, self.run, self.key, self.place, self.first)

    @property
    def objects(self) -> Path:
        return self.root / "runs" / self.run / f"{self.step}~1"

    def judge(self, home: Path) -> tuple[Status, str, LostFilesDocument]:
        lost = note_lost_files(self.store, self.run, home)
        judged = judgement.judge_run(self.store, self.run, rules=RULES, references=REFERENCES)
        self.store.runs.finish(self.run, judged.status, judged.reason, T0 + 50)
        return judged.status, judged.reason, lost


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with open_store(tmp_path / "tipcflow.db") as store:
        made = Site(store, tmp_path)
        monkeypatch.setenv("TIPCFLOW_STORE", f"file://{made.root}")
        yield made


def test_certificate_on_another_worker_is_complete(site: Site) -> None:
    assert site.close() == ""
    status, reason, lost = site.judge(site.second)
    assert status is Status.PASS, reason
    assert (lost.missing, lost.changed, lost.unstored, lost.kept, lost.why) == ((), (), (), 3, "")
    made = json.loads(judgement.write_certificate(site.store, site.run, site.second).read_text())
    assert list(made["files"]) == sorted(f"{site.step}/{name}" for name in (LOG, LARGE, WEIGHTS))
    assert judgement.store_certificate(site.store, site.run, site.second) == ""
    assert json.loads((site.root / "runs" / site.run / "certificate.json").read_text()) == made
    assert verify(made, files=made["files"]) == []


def test_large_logs_are_stored_compressed(site: Site) -> None:
    site.close()
    with gzip.open(site.objects / f"{LARGE}.gz", "rt") as file:
        assert file.read() == TEXT
    assert (site.objects / LOG).read_text() == "started\n"
    document = site.store.documents.get(site.run, StoredDocument)
    assert document is not None
    assert set(document.root[site.key]) == {LOG, f"{LARGE}.gz", WEIGHTS}
    assert document.root[site.key][WEIGHTS] == 7


def test_other_machine_reads_the_files_of_a_run(site: Site) -> None:
    site.close()
    files = RunFiles(site.store, site.run, site.second)
    assert sorted(file.path for file in files.elsewhere) == sorted(
        f"{site.step}/{each}" for each in (LOG, LARGE, WEIGHTS)
    )
    path = files.open_path(f"{site.step}/{LARGE}")
    assert path is not None
    with open_kept(path) as file:
        assert file.read().decode() == TEXT
    assert files.open_path(f"{site.step}/nothing.log") is None
    assert files.of_step(site.step, "model.pdparams") == [], "directly below the node's folder"
    assert list(RunFiles(site.store, site.run, site.first).elsewhere) == []


def test_files_of_another_attempt_in_the_folder_are_not_mistaken(site: Site) -> None:
    """Worker 2 closed attempt 1, worker 1 attempt 2, whose files have the same names."""
    site.close()
    site.store.attempts.open(site.run, site.step, NODES, T0 + 60)
    second = site.second / "runs" / site.run / site.step
    (second / LOG).parent.mkdir(parents=True)
    (second / LOG).write_text("second attempt\n")
    (second / ".attempt").write_text("2")
    record_kept(site.store, site.run, site.step, 2, second)
    assert store_files(site.store, site.run, AttemptKey(site.step, 2), second, site.second) == ""
    for home in (site.first, site.second):
        lost = note_lost_files(site.store, site.run, home)
        assert (lost.missing, lost.changed, lost.unstored, lost.kept) == ((), (), (), 4), home
        path = RunFiles(site.store, site.run, home).open_path(f"{site.step}/{LOG}")
        assert path is not None
        assert path.read_text() == "second attempt\n"


def test_store_that_dies_before_the_end_of_a_step_is_used_later(site: Site) -> None:
    away = site.root.rename(site.root.with_name("unmounted"))
    problem = site.close()
    assert problem.startswith(f"3 files of 3 not stored: {LARGE}, {LOG}, {WEIGHTS}; ")
    assert f"file://{site.root} does not exist on this machine" in problem
    status, reason, _ = site.judge(site.second)
    assert status is Status.INFRA_FAILURE
    assert reason.startswith(
        "ran.files: 3 of 3 fetched files are neither on this machine nor in the object store: "
    )
    away.rename(site.root)
    status, reason, lost = site.judge(site.first)
    assert status is Status.PASS, reason
    assert lost.unstored == ()
    assert site.judge(site.second)[0] is Status.PASS


def test_store_that_dies_in_the_middle_is_reported_by_the_judge(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = object_store.ObjectStore.put

    def some(self: Any, name: str, file: Path) -> int:
        if name.endswith("main.log"):
            raise self._error(f"write {name}", "Connection reset by peer")
        return put(self, name, file)

    monkeypatch.setattr(object_store.ObjectStore, "put", some)
    assert site.close().startswith(f"1 file of 3 not stored: {LOG}; cannot write runs/")
    status, reason, lost = site.judge(site.first)
    assert (status, lost.unstored) == (Status.INFRA_FAILURE, (f"{site.step}/{LOG}",))
    assert reason.startswith(
        f"ran.files: 1 of 3 fetched files are not in the object store: {site.step}/{LOG}; cannot "
    )
    assert "Connection reset by peer" in reason
    monkeypatch.undo()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{site.root}")
    assert site.judge(site.first)[0] is Status.PASS


@pytest.mark.parametrize("name", [LOG, f"{LARGE}.gz"])
def test_truncated_object_is_written_again_or_reported(site: Site, name: str) -> None:
    site.close()
    path = site.objects / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    status, reason, lost = site.judge(site.second)
    assert status is Status.INFRA_FAILURE
    assert lost.changed == (f"{site.step}/{name.removesuffix('.gz')}",)
    assert "is damaged: its SHA-256 differs from the stored one" in reason
    assert site.judge(site.first)[0] is Status.PASS, "the machine that fetched the file has it still"
    assert path.read_bytes() == whole
    assert site.judge(site.second)[0] is Status.PASS


def test_object_with_another_content_of_the_same_size_is_reported(site: Site) -> None:
    site.close()
    (site.objects / LOG).write_text("STARTED\n")
    status, reason, lost = site.judge(site.second)
    assert (status, lost.changed, lost.missing) == (Status.INFRA_FAILURE, (f"{site.step}/{LOG}",), ())
    assert reason.startswith(f"ran.files: 1 fetched file was changed after the step: {site.step}/{LOG}; ")


def test_removed_object_is_missing(site: Site) -> None:
    site.close()
    (site.objects / LOG).unlink()
    status, reason, lost = site.judge(site.second)
    assert (status, lost.missing) == (Status.INFRA_FAILURE, (f"{site.step}/{LOG}",))
    assert reason == (
        f"ran.files: 1 of 3 fetched files are neither on this machine nor in the object store: {site.step}/{LOG}; "
        "all workers must share one TIPCFLOW_STORE"
    )


def test_removed_object_is_missing_despite_a_copy(site: Site) -> None:
    site.close()
    assert site.judge(site.second)[0] is Status.PASS
    (site.objects / LOG).unlink()
    (site.objects / f"{LARGE}.gz").write_bytes(b"other")
    status, reason, lost = site.judge(site.second)
    assert (status, lost.missing) == (Status.INFRA_FAILURE, (f"{site.step}/{LOG}",)), reason
    assert lost.changed == (f"{site.step}/{LARGE}",)


def test_object_that_a_listing_lacks_is_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.close()
    monkeypatch.setattr(object_store.ObjectStore, "below", lambda *_: [])
    status, reason, lost = site.judge(site.second)
    assert (status, lost.missing, lost.kept) == (Status.PASS, (), 3), reason


def test_objects_of_a_run_are_listed_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.close()
    below, listed = object_store.ObjectStore.below, []
    monkeypatch.setattr(
        object_store.ObjectStore, "below", lambda self, prefix: listed.append(prefix) or below(self, prefix)
    )
    for home in (site.first, site.second):
        site.judge(home)
    assert listed == [f"runs/{site.run}"] * 2


def test_store_without_a_response_ends_the_judge_in_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.close()
    for name in ("TRANSFER_S", "REQUEST_S"):
        monkeypatch.setattr(object_store, name, 0.3)
    monkeypatch.setattr(object_store.ObjectStore, "_system", lambda _: threading.Event().wait())
    for home in (site.first, site.second):
        status, reason, lost = site.judge(home)
        assert status is Status.INFRA_FAILURE
        assert "in the object store" in reason
        assert lost.why.endswith("within 0.3 s")


def test_late_files_of_another_machine_are_added(site: Site) -> None:
    site.close()
    there = site.second / "runs" / site.run / f"{site.step}~1"
    (there / "node-b").mkdir(parents=True)
    (there / "node-b" / "late.log").write_text("late\n")
    record_kept(site.store, site.run, site.step, 1, there, late=True)
    assert store_files(site.store, site.run, site.key, there, site.second) == ""
    for home in (site.first, site.second):
        lost = note_lost_files(site.store, site.run, home)
        assert (lost.missing, lost.changed, lost.unstored, lost.kept) == ((), (), (), 4)


def test_without_a_store_nothing_is_written(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIPCFLOW_STORE")
    monkeypatch.setattr(deadline.threading, "Thread", None)
    assert site.close() == ""
    assert site.judge(site.first)[0] is Status.PASS
    status, reason, _ = site.judge(site.second)
    assert status is Status.INFRA_FAILURE
    assert reason.endswith("all workers must share one TIPCFLOW_HOME, or use one TIPCFLOW_STORE")
    assert list(site.root.iterdir()) == []
    assert site.store.documents.get(site.run, StoredDocument) is None
