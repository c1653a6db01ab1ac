import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run

from devcluster.sample_history import fill as filling
from tipcflow.store import Store


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two weeks of three chains."""
    whole = filling.fill
    monkeypatch.setattr(filling, "fill", lambda url, report: whole(url, report, weeks=2, chains=3))


def test_demo_history_is_in_a_separate_database(
    tipcflow: Callable[..., Any], database: Path, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open() as store:
        store.runs.create(a_run())
    result = tipcflow("demo", "--history")
    url = f"sqlite:///{database.parent / 'sample-history.db'}"
    assert result.code == 0
    assert f"generated runs in {url}; no node executed them" in result.out
    assert f"TIPCFLOW_DATABASE_URL={url}" in result.out
    with Store.open() as store:
        assert len(store.runs.newest()) == 1
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", url)
    assert len(json.loads(tipcflow("runs", "--json").out)) > 6


def test_a_database_with_real_runs_is_refused(tipcflow: Callable[..., Any], database: Path, short: None) -> None:
    with Store.open() as store:
        store.runs.create(a_run())
    result = tipcflow("demo", "--history", "--database", f"sqlite:///{database}")
    assert (result.code, result.out) == (2, "")
    assert "the database has runs that are not generated" in result.err
    assert "Traceback" not in result.err


def test_a_database_without_history_is_refused(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("demo", "--database", "sqlite:////tmp/x.db")
    assert result.code == 2
    assert "--database: needs --history" in result.err
