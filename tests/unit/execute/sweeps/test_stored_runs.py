"""A worker's files of old runs are removed once the object store has them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import open_store
from tests.unit.execute.collect.test_store_files import LARGE, LOG, Site

from tipcflow.domain import Status
from tipcflow.execute.collect.run_files import RunFiles
from tipcflow.execute.events import events_path
from tipcflow.execute.sweeps.old_events import trim_now
from tipcflow.execute.sweeps.stored_runs import FILES_S
from tipcflow.execute.verdict.judge import store_certificate, write_certificate


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A run with stored files that ended, and was last changed, a minute longer ago than files stay."""
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{tmp_path}/tipcflow.db")
    with open_store(tmp_path / "tipcflow.db") as store:
        made = Site(store, tmp_path)
        monkeypatch.setenv("TIPCFLOW_STORE", f"file://{made.root}")
        assert made.close() == ""
        store.runs.finish(made.run, Status.PASS, "", time.time() - FILES_S - 60)
        write_certificate(store, made.run, made.first)
        assert store_certificate(store, made.run, made.first) == ""
        events_path(made.first, made.run).write_text("{}\n")
        age(made)
        yield made


def age(site: Site) -> None:
    for path in (site.first / "runs" / site.run).rglob("*"):
        if path.is_file() and path != events_path(site.first, site.run):
            os.utime(path, (time.time() - FILES_S - 60,) * 2)


def left(site: Site) -> set[str]:
    return {path.name for path in (site.first / "runs" / site.run).rglob("*") if path.is_file()}


def test_stored_files_of_an_old_run_are_removed(site: Site) -> None:
    trim_now(site.first)
    assert left(site) == {"events.jsonl"}, "progress has a time of its own"
    assert [path.name for path in (site.first / "runs" / site.run).iterdir()] == ["events.jsonl"]
    path = RunFiles(site.store, site.run, site.first).open_path(f"{site.step}/{LOG}")
    assert path is not None, "readers use the object store"
    assert path.read_text() == "started\n"


@pytest.mark.parametrize(
    "change", ["no object", "other content", "no certificate", "another file", "hidden file", "new file", "held"]
)
def test_folder_with_a_file_that_is_not_stored_stays(site: Site, change: str) -> None:
    if change == "no object":
        (site.objects / f"{LARGE}.gz").unlink()
    elif change == "other content":
        (site.place / LOG).write_text("changed\n")
    elif change == "no certificate":
        (site.root / "runs" / site.run / "certificate.json").unlink()
    elif change == "another file":
        (site.place / "node-a" / "late.log").write_text("fetched late\n")
    elif change == "hidden file":
        (site.place / "node-a" / ".main.log.gz.1").write_text("")
    elif change == "held":
        site.store.leases.acquire(site.run, [("node-a", 0)], owner="o", ttl_s=60)
    age(site)
    if change == "new file":
        os.utime(site.place / LOG)
    before = left(site)
    trim_now(site.first)
    assert left(site) == before


def test_files_of_a_newer_run_stay(site: Site) -> None:
    site.store.runs.finish(site.run, Status.PASS, "", time.time() - FILES_S + 60)
    before = left(site)
    trim_now(site.first)
    assert left(site) == before


def test_without_an_object_store_files_stay(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIPCFLOW_STORE")
    before = left(site)
    trim_now(site.first)
    assert left(site) == before
