"""A status that the database could not take waits in a file for a later command."""

from pathlib import Path

from tests.support.stories import a_plan, a_run

from tipcflow.domain import Status
from tipcflow.execute import spool
from tipcflow.store import Store


def test_a_kept_status_is_given_to_its_run_once(tmp_path: Path) -> None:
    run = a_run().model_copy(update={"status": None, "ended_at": None})
    with Store.open(f"sqlite:///{tmp_path}/tipcflow.db") as store:
        store.create_run(run, a_plan())
        assert spool.keep(tmp_path, run.id, Status.INFRA_FAILURE, "the database is locked")
        assert spool.keep(tmp_path, "of-another-database", Status.INFRA_FAILURE, "x")
        assert spool.apply(tmp_path, store) == [run.id]
        assert store.get_run(run.id).status is Status.INFRA_FAILURE
        store.finish_run(run.id, Status.PASS, "judged since", 1.0)
        assert spool.apply(tmp_path, store) == []
        assert store.get_run(run.id).status is Status.PASS
    assert [path.stem for path in (tmp_path / spool.FOLDER).iterdir()] == ["of-another-database"]
