"""The opened files of an accepted run: stored once per chain, mode and commit, if every step has a record."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import INFER, T0, TRAIN, a_run, open_store, record_run

from tipcflow.config.run_documents import OpenedDocument
from tipcflow.domain import Status
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.source.cache import keep_snapshot
from tipcflow.execute.source.opened import note_opened
from tipcflow.execute.source.snapshot import Snapshot
from tipcflow.remote import paths
from tipcflow.remote.runner.opened_files import MORE, NAME
from tipcflow.store import Store

SHA = "c" * 40
NAMES = frozenset({"train.py", "infer.py", "configs/a.yaml", "unused.py"})


class Site:
    """TIPCFLOW_HOME with a database."""

    def __init__(self, home: Path, store: Store) -> None:
        self.home, self.store = home, store

    def run(self, name: str = "r1", status: Status = Status.PASS, **fields: Any) -> str:
        requested = {"params": "p.txt", "suite": "sample", "mode": "m", "cluster": "c", "config_dir": self.home}
        drop = fields.pop("drop", ())
        run = record_run(self.store, a_run(name, **{"suite_commit": SHA, **fields}), status=status)
        snapshot = Snapshot(SHA, b"archive", "f" * 64, "p.txt", "", NAMES)
        self.store.documents.put(run.id, keep_snapshot(self.home, snapshot))
        self.store.documents.put(run.id, RequestDocument(RunRequest(**requested, drop=drop)))
        return run.id

    def record(self, step: str, node: str, *lines: str, run: str = "r1") -> None:
        folder = self.home / "runs" / run / paths.safe_name(step) / node
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAME).write_text("".join(f"{line}\n" for line in lines))

    def records(self, run: str = "r1") -> None:
        self.record(TRAIN, "node-a", "train.py", "output/model.json", run=run)
        self.record(TRAIN, "node-b", "configs/a.yaml", "train.py", run=run)
        self.record(INFER, "node-a", "infer.py", run=run)

    def noted(self, run: str) -> OpenedDocument | None:
        note_opened(self.store, run, self.home)
        return self.store.documents.get(run, OpenedDocument)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_store(tmp_path / "tipcflow.db") as store:
        yield Site(tmp_path, store)


def test_opened_files_of_all_steps_exclude_files_written_by_the_run(site: Site) -> None:
    site.records()
    found = site.noted(site.run())
    assert found == OpenedDocument(commit=SHA, paths=("configs/a.yaml", "infer.py", "train.py"))
    assert site.store.opened.newest([a_run().chain], [a_run().mode]) == {a_run().chain: found}


def test_opened_files_are_stored_once_per_chain_and_commit(site: Site) -> None:
    site.records()
    assert site.noted(site.run())
    site.records("r2")
    assert site.noted(site.run("r2", created_at=T0 + 9)) is None


@pytest.mark.parametrize("lines", [(), (MORE,)], ids=["missing", "too long"])
def test_step_without_a_complete_record_leaves_none(site: Site, lines: tuple[str, ...]) -> None:
    site.records()
    site.record(INFER, "node-a", *lines)
    assert site.noted(site.run()) is None


def test_runs_that_prove_less_leave_none(site: Site) -> None:
    for number, (status, fields) in enumerate(
        [
            (Status.FAILED, {}),
            (Status.PASS, {"suite_commit": f"{SHA}+local"}),
            (Status.PASS, {"suite_commit": ""}),
            (Status.PASS, {"drop": ("*",)}),
        ]
    ):
        site.records(f"x{number}")
        assert site.noted(site.run(f"x{number}", status, **fields)) is None


def test_run_of_an_unaccepted_change_leaves_no_opened_files(site: Site) -> None:
    site.records()
    run = site.run()
    site.store.documents.put(run, MergeBaseDocument(commit="d" * 40))
    assert site.noted(run) is None


def test_record_of_the_first_of_the_modes_is_used(site: Site) -> None:
    for number, mode in enumerate(("lite_train_lite_infer", "whole_train_whole_infer")):
        site.records(mode)
        assert site.noted(site.run(mode, mode=mode, created_at=T0 + number, suite_commit=f"{number}" * 40))
    chain = a_run().chain
    found = site.store.opened.newest([chain], ["lite_train_lite_infer", "whole_train_whole_infer"])
    assert found[chain].commit == "0" * 40
    assert site.store.opened.newest([chain], ["benchmark_train"]) == {}
