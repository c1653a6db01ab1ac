"""Files of the object store on the pages of an api-server without a folder of runs."""

import threading
from pathlib import Path

import pytest
from fastapi import HTTPException
from fsspec.implementations.local import LocalFileSystem
from tests.support.bad_day import record_failure
from tests.support.stories import TRAIN, record_run

from tipcflow.config.settings import settings
from tipcflow.domain.keys import AttemptKey
from tipcflow.execute.collect.kept_files import record_kept
from tipcflow.execute.collect.run_files import RunFiles
from tipcflow.execute.collect.store_files import store_files
from tipcflow.execute.verdict.run_data import load_run
from tipcflow.remote.paths import safe_name
from tipcflow.store import Store
from tipcflow_pages.data import files
from tipcflow_pages.data.files import run_files
from tipcflow_pages.run_files import tail_of, whole_file
from tipcflow_pages.views.neighbours import collect_context

FOLDER = safe_name(TRAIN)
LOG = f"{FOLDER}/node-a/logs/main.log"
RANK_LOG = f"{FOLDER}/node-b/files/log/workerlog.0"


@pytest.fixture
def run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A failed run whose files a worker with its own home has fetched."""
    (tmp_path / "bucket").mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{tmp_path}/bucket")
    worker = tmp_path / "worker"
    record_run(store)
    run = record_failure(store, worker).id
    folder = worker / "runs" / run / FOLDER
    (folder / "node-a" / "launch.sh").write_text("export TOKEN=1\n")
    (worker / "runs" / run / RANK_LOG).parent.mkdir()
    (worker / "runs" / run / RANK_LOG).write_text("rank 2\n")
    record_kept(store, run, TRAIN, 1, folder)
    assert store_files(store, run, AttemptKey(TRAIN, 1), folder, worker) == ""
    return run


def test_files_of_another_machine_are_listed_and_read(store: Store, run: str, tmp_path: Path) -> None:
    context = collect_context(store, load_run(store, store.runs.get(run)), tmp_path)
    listed = run_files(None, RunFiles(store, run, tmp_path))
    assert [(file.node, file.name, file.bytes, file.readable, file.stored) for file in listed] == [
        ("node-a", "logs/main.log", 21, True, True),
        ("node-a", "launch.sh", 15, False, True),
        ("node-b", "files/log/workerlog.0", 7, True, True),
        ("node-b", "logs/main.log", 8, True, True),
        ("node-b", "files/output/best.pdparams", 5000, False, True),
    ]
    assert context.excerpts[0][2] == LOG
    assert "ValueError" in context.excerpts[0][3]
    response = tail_of(run, LOG, store, settings())
    assert b"epoch 1\nValueError" in bytes(response.body)
    assert whole_file(run, LOG, store, settings()).headers["content-disposition"].endswith("main.log")


def test_log_of_a_rank_is_read_and_downloaded(store: Store, run: str) -> None:
    assert bytes(tail_of(run, RANK_LOG, store, settings()).body) == b"rank 2\n"
    assert whole_file(run, RANK_LOG, store, settings()).headers["content-disposition"].endswith("workerlog.0")


@pytest.mark.parametrize(
    "file",
    [f"{FOLDER}/node-b/files/output/best.pdparams", f"{FOLDER}/node-a/launch.sh", f"../{LOG}", "nothing.log"],
)
def test_file_that_users_may_not_read_is_not_copied(store: Store, run: str, tmp_path: Path, file: str) -> None:
    with pytest.raises(HTTPException) as caught:
        tail_of(run, file, store, settings())
    assert caught.value.status_code == 404
    assert not (tmp_path / "objects").exists(), "nothing was copied"


def test_slow_copy_of_a_log_continues_for_the_next_request(
    store: Store, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, has_begun, copies = threading.Event(), threading.Event(), []

    def slow(self: LocalFileSystem, source: str, target: str, **_: object) -> None:
        copies.append(source)
        Path(target).write_bytes(Path(source).read_bytes()[:10])
        has_begun.set()
        may_end.wait()
        Path(target).write_bytes(Path(source).read_bytes())

    monkeypatch.setattr(LocalFileSystem, "get_file", slow)
    monkeypatch.setattr(files, "COPY_S", 0.1)
    with pytest.raises(HTTPException):
        whole_file(run, LOG, store, settings())
    has_begun.wait()
    with pytest.raises(HTTPException, match="10 B of 21 B copied; the copy continues") as caught:
        whole_file(run, LOG, store, settings())
    assert caught.value.status_code == 503
    monkeypatch.setattr(files, "COPY_S", 60.0)
    threading.Timer(0.2, may_end.set).start()
    assert b"epoch 1\nValueError" in bytes(tail_of(run, LOG, store, settings()).body)
    assert len(copies) == 1
    left = [path.name for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    assert left == ["main.log"]


def test_store_that_is_away_is_an_error_of_the_file_alone(store: Store, run: str, tmp_path: Path) -> None:
    (tmp_path / "bucket").rename(tmp_path / "unmounted")
    with pytest.raises(HTTPException, match="does not exist on this machine") as caught:
        tail_of(run, LOG, store, settings())
    assert caught.value.status_code == 503
    context = collect_context(store, load_run(store, store.runs.get(run)), tmp_path)
    assert context.excerpts == ()
    assert context.files
