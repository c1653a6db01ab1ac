"""The end of a run: what is stored beside the verdict cannot replace it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.stories import a_run, open_store, record_run

from tipcflow.domain import ConfigError, Status
from tipcflow.domain.run_documents import JudgementDocument
from tipcflow.execute.run import phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


def raises(error: Exception) -> Any:
    def function(*_: object) -> None:
        raise error

    return function


def test_errors_of_alerts_opened_files_and_the_key_leave_the_verdict(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = record_run(store, a_run(status=None))
    store.documents.put(run.id, JudgementDocument(status=Status.REGRESSION, reason="slower"))
    monkeypatch.setattr(phases, "track_alone", raises(ValueError("facts of another version")))
    monkeypatch.setattr(phases, "note_opened", raises(OSError("disk full")))
    monkeypatch.setattr(phases.judgement, "write_certificate", raises(ConfigError("cannot use the key")))
    notes: list[str] = []
    context = SimpleNamespace(store=store, run_id=run.id, home=tmp_path, note=notes.append)
    ended = phases.finish_run(cast(TaskContext, context))
    assert (ended.status, ended.reason) == (Status.REGRESSION, "slower")
    assert notes == [
        "its alerts could not be stored: ValueError('facts of another version')",
        "the files that it opened could not be stored: OSError('disk full')",
        "the certificate is not signed: cannot use the key",
    ]
