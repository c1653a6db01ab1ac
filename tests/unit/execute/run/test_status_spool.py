"""A status that the database could not take waits in a file for a later command."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.stories import a_plan, a_run, open_store

from tipcflow.domain import Status
from tipcflow.execute.run import status_spool as spool


def test_a_kept_status_is_given_to_its_run_once(tmp_path: Path) -> None:
    run = a_run().model_copy(update={"status": None, "ended_at": None})
    with open_store(tmp_path / "tipcflow.db") as store:
        store.runs.create(run, a_plan())
        assert spool.keep(tmp_path, run.id, Status.INFRA_FAILURE, "the database is locked")
        assert spool.keep(tmp_path, "of-another-database", Status.INFRA_FAILURE, "x")
        assert spool.apply(tmp_path, store) == [run.id]
        assert store.runs.get(run.id).status is Status.INFRA_FAILURE
        store.runs.finish(run.id, Status.PASS, "judged since", 1.0)
        assert spool.apply(tmp_path, store) == []
        assert store.runs.get(run.id).status is Status.PASS
    assert [path.stem for path in (tmp_path / spool.FOLDER).iterdir()] == ["of-another-database"]


def test_a_status_is_kept_in_the_room_that_its_run_has_reserved(tmp_path: Path) -> None:
    spool.reserve(tmp_path, "r1")
    (reserved,) = (tmp_path / spool.FOLDER).iterdir()
    before = reserved.stat()
    assert spool.keep(tmp_path, "r1", Status.INFRA_FAILURE, "x" * 9000)
    (kept,) = (tmp_path / spool.FOLDER).iterdir()
    assert kept.name == "r1.json"
    assert (kept.stat().st_ino, kept.stat().st_size) == (before.st_ino, before.st_size), (
        "no further room was needed"
    )
    spool.reserve(tmp_path, "r2")
    spool.release(tmp_path, "r2")
    assert [path.name for path in (tmp_path / spool.FOLDER).iterdir()] == ["r1.json"]


def test_reserved_room_of_ended_and_of_forgotten_runs_is_given_back(tmp_path: Path) -> None:
    living, ended = (a_run().model_copy(update={"id": name}) for name in ("living", "ended"))
    with open_store(tmp_path / "tipcflow.db") as store:
        store.runs.create(living.model_copy(update={"status": None, "ended_at": None}), a_plan())
        store.runs.create(ended.model_copy(update={"status": None, "ended_at": None}), a_plan())
        store.runs.finish("ended", Status.PASS, "", 1.0)
        held = [spool.reserve(tmp_path, run) for run in ("living", "ended", "unknown", "old")]
        os.utime(tmp_path / spool.FOLDER / "old.reserved", (0, 0))
        assert spool.apply(tmp_path, store) == []
    assert all(held)
    assert {path.stem for path in (tmp_path / spool.FOLDER).iterdir()} == {"living", "unknown"}


HOLD = """
import sys, time
from pathlib import Path
from tipcflow.execute.run import status_spool as spool
held = spool.reserve(Path(sys.argv[1]), "r1")
print(bool(held), flush=True)
time.sleep(60)
"""


def test_a_run_whose_process_was_killed_is_an_infra_failure(tmp_path: Path) -> None:
    run = a_run().model_copy(update={"id": "r1", "status": None, "ended_at": None})
    folder = tmp_path / spool.FOLDER
    with open_store(tmp_path / "tipcflow.db") as store:
        store.runs.create(run, a_plan())
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            assert spool.apply(tmp_path, store) == []
            process.kill()
        assert spool.apply(tmp_path, store) == ["r1"]
        ended = store.runs.get("r1")
        assert ended.status is Status.INFRA_FAILURE
        assert ended.reason.startswith(spool.NO_CONTROLLER)
        assert spool.left_runs(tmp_path) == ["r1"]
        assert spool.apply(tmp_path, store) == []
    spool.forget_left(tmp_path, "r1")
    assert list(folder.iterdir()) == []


def test_the_file_of_an_earlier_version_was_never_locked(tmp_path: Path) -> None:
    run = a_run().model_copy(update={"id": "r1", "status": None, "ended_at": None})
    with open_store(tmp_path / "tipcflow.db") as store:
        store.runs.create(run, a_plan())
        (tmp_path / spool.FOLDER).mkdir()
        (tmp_path / spool.FOLDER / "r1.reserved").write_bytes(b" " * spool.ROOM)
        assert spool.apply(tmp_path, store) == []
        assert store.runs.get("r1").status is None


def test_run_of_a_lost_database_is_stored_in_the_new_database(tmp_path: Path) -> None:
    began = a_run().model_copy(update={"status": None, "ended_at": None, "reason": ""})
    with open_store(tmp_path / "tipcflow.db") as store:
        lost = store.url, began
        spool.reserve(tmp_path, began.id)
        assert spool.keep(tmp_path, began.id, Status.INFRA_FAILURE, "it was deleted", lost=lost)
    with open_store(tmp_path / "another.db") as another:
        assert spool.apply(tmp_path, another) == []
    (tmp_path / "tipcflow.db").unlink()
    with open_store(tmp_path / "tipcflow.db") as store:
        assert spool.apply(tmp_path, store) == [began.id]
        stored = store.runs.get(began.id)
    assert (stored.status, stored.reason, stored.chain) == (Status.INFRA_FAILURE, "it was deleted", began.chain)
    assert list((tmp_path / spool.FOLDER).iterdir()) == []
