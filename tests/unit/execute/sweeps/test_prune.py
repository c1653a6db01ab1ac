"""Old files of runs are removed, except those that a decision or an active run needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run
from tests.unit.domain.alert.test_entry import alert, moved
from tests.unit.store.test_quarantines import quarantine

from tipcflow.domain import Status
from tipcflow.domain.alert.entry import AlertEvent, AlertState, EventKind
from tipcflow.execute.objects.object_store import ObjectStore
from tipcflow.execute.sweeps.prune import find_old_runs, remove_old_runs
from tipcflow.store import Store
from tipcflow.store.baselines import Baseline

DAY = 86_400.0
NOW = 1_800_000_000.0
BEFORE = NOW - 400 * DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/tipcflow.db") as store:
        yield store


def add(store: Store, home: Path, name: str, *, days: float = 500, status: Status | None = Status.PASS) -> str:
    """Store a run that ended `days` before, with a folder of 5 bytes; return its ID."""
    run = a_run(name, created_at=NOW - days * DAY - 60)
    store.runs.create(run)
    if status is not None:
        store.runs.finish(run.id, status, "", NOW - days * DAY)
    folder = home / "runs" / run.id / "v" / "train"
    folder.mkdir(parents=True)
    (folder / "main.log").write_text("12345")
    return run.id


def left(home: Path) -> set[str]:
    return {path.name for path in (home / "runs").iterdir()}


def test_only_old_runs_are_removed(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path, "old")
    add(store, tmp_path, "older", days=600)
    add(store, tmp_path, "new", days=399)
    add(store, tmp_path, "active", status=None)
    (tmp_path / "runs" / "unknown").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "runs" / "old" / "link").symlink_to(outside)
    (tmp_path / "runs" / "linked").symlink_to(outside)
    found = find_old_runs(store, tmp_path, None, before=BEFORE)
    assert [each.run.id for each in found.runs] == ["older", "old"]
    assert found.kept == {"of runs that the database does not have": 1, "of runs without a status": 1}
    assert (found.runs[0].files, found.runs[0].bytes, found.objects) == (1, 5, 0)
    assert found.files == 2, "links are not followed"
    assert left(tmp_path) == {"old", "older", "new", "active", "unknown", "linked"}, "finding removes nothing"
    assert remove_old_runs(store, tmp_path, None, found.runs) == []
    assert left(tmp_path) == {"new", "active", "unknown", "linked"}
    assert outside.is_dir()
    assert store.runs.get("old").status is Status.PASS


def test_runs_of_decisions_stay(store: Store, tmp_path: Path) -> None:
    runs = ("base", "first", "good", "seen", "newest", "closed", "failing", "evidence", "leased", "free")
    for name in runs:
        add(store, tmp_path, name)
    line = {"chain": "s/a/train", "mode": "lite", "environment": "cpu", "step": "v/train", "metric": "ips"}
    why = {"run": "base", "who": "mia", "why": "new kernel", "accepted_at": NOW}
    for value in (1.0, 2.0):
        store.baselines.accept_one(Baseline.model_validate({**line, **why, "value": value}))
        why["run"] = "newest"
    draft = alert(moved("ips", 0.8), first="first", newest="newest", last_good="good")
    store.tracked_alerts.open(draft, "slow", at=NOW)
    store.tracked_alerts.change(AlertEvent(alert=1, at=NOW, who="tipcflow", kind=EventKind.SEEN, run="seen"))
    store.tracked_alerts.open(alert(moved("ips", 0.8), first="closed", newest="closed"), "slow", at=NOW)
    decided = AlertEvent(alert=2, at=NOW, who="mia", kind=EventKind.STATE, text="fixed")
    store.tracked_alerts.change(decided, state=AlertState.FIXED, state_at=NOW)
    store.quarantines.add(quarantine(run="failing", evidence=("failing", "evidence")), per_day=3)
    store.leases.acquire("leased", [("node-a", 0)], owner="o", ttl_s=1, now=NOW - 50)
    found = find_old_runs(store, tmp_path, None, before=BEFORE)
    assert {each.run.id for each in found.runs} == {"closed", "free"}
    assert found.kept == {
        "of baselines": 2,
        "of open alerts": 3,
        "of quarantines": 2,
        "of runs that hold slots": 1,
    }


def test_objects_of_old_runs_are_removed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    objects = ObjectStore(f"file://{tmp_path}/shared")
    file = tmp_path / "file"
    file.write_text("1234567")
    add(store, tmp_path, "old")
    store.runs.create(a_run("elsewhere", created_at=NOW - 500 * DAY))
    store.runs.finish("elsewhere", Status.FAILED, "", NOW - 500 * DAY)
    add(store, tmp_path, "new", days=1)
    kept = ["runs/new/certificate.json", "suites/old.tar.gz"]
    for name in ("runs/elsewhere/v~1/node-a/main.log", "events/old/m.jsonl", "runs/old/certificate.json", *kept):
        objects.put(name, file)
    found = find_old_runs(store, tmp_path, objects, before=BEFORE)
    assert (len(found.runs), found.objects, found.object_bytes, found.bytes) == (2, 3, 21, 5)
    assert remove_old_runs(store, tmp_path, objects, found.runs) == []
    assert sorted(each.name for each in objects.below("")) == kept
    assert left(tmp_path) == {"new"}


def test_run_that_continues_meanwhile_stays(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path, "old")
    found = find_old_runs(store, tmp_path, None, before=BEFORE)
    store.runs.reopen("old")
    assert remove_old_runs(store, tmp_path, None, found.runs) == ["old: has changed and stays"]
    assert left(tmp_path) == {"old"}


def test_files_that_cannot_be_removed_are_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, tmp_path, "old")
    add(store, tmp_path, "older", days=600)
    found = find_old_runs(store, tmp_path, None, before=BEFORE)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("tipcflow.execute.sweeps.prune.shutil.rmtree", refuse)
    problems = remove_old_runs(store, tmp_path, None, found.runs)
    assert problems == [
        f"older: Permission denied ({tmp_path}/runs/older)",
        f"old: Permission denied ({tmp_path}/runs/old)",
    ]
