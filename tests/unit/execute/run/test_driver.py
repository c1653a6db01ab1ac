"""A run in one process: what is refused before anything starts."""

from pathlib import Path

import pytest
from tests.support.stories import open_store

from tipcflow.domain import Status
from tipcflow.execute.request import RunRequest
from tipcflow.execute.run.driver import ChainRun


def test_unusable_signing_key_is_an_error_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "signing.pem"
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(key))
    request = RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", tmp_path)
    with open_store(tmp_path / "own.db") as store:
        run = ChainRun(request, store, home=tmp_path).execute()
        assert store.plans.get_or_none(run.id) is None
    assert run.status is Status.CONFIG_ERROR
    assert run.reason.startswith(
        f"TIPCFLOW_SIGNING_KEY: cannot use the key: No such file or directory; found '{key}'"
    )
