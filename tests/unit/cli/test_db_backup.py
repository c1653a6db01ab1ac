"""`tipcflow db backup` and `restore`: one line of success, one line per error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, record_run

from tipcflow.domain import Status
from tipcflow.store import Store, migrate

pytestmark = pytest.mark.slow

HEAD = migrate.HEAD


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'elsewhere.db'}"


def test_a_verdict_is_the_same_after_restoring_elsewhere(
    tipcflow: Callable[..., Any], database: Path, tmp_path: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open() as store:
        record_run(store)
    before = [tipcflow("show", "latest"), tipcflow("show", "latest", "--json"), tipcflow("runs", "--json")]
    file = tmp_path / "backup"
    result = tipcflow("db", "backup", str(file))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"sqlite:///{database} -> {file}: schema {HEAD}, 1 run, ")
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", elsewhere)
    assert tipcflow("db", "restore", str(file)).out == f"{file} -> {elsewhere}: schema {HEAD}, 1 run\n"
    after = [tipcflow("show", "latest"), tipcflow("show", "latest", "--json"), tipcflow("runs", "--json")]
    assert after == before
    result = tipcflow("db", "restore", str(file), "--replace", "--json")
    assert json.loads(result.out) == {
        "url": elsewhere,
        "file": str(file),
        "head": HEAD,
        "revision": HEAD,
        "runs": 1,
        "replaced": True,
    }


def test_an_older_backup_is_upgraded(tipcflow: Callable[..., Any], database: Path, tmp_path: Path) -> None:
    migrate.downgrade(f"sqlite:///{database}", "0008")
    assert "schema 0008, 0 runs, " in tipcflow("db", "backup", str(tmp_path / "backup")).out
    result = tipcflow("db", "restore", str(tmp_path / "backup"))
    assert result.out.endswith(f": schema 0008, upgraded to {HEAD}, 0 runs\n")


def test_every_backup_error_is_a_single_line(
    tipcflow: Callable[..., Any], database: Path, tmp_path: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open() as store:
        record_run(store)
    url, file, text = f"sqlite:///{database}", tmp_path / "backup", tmp_path / "text"
    text.write_text("text")
    tipcflow("db", "backup", str(file))
    assert tipcflow("db", "backup", str(file)).err == (
        f"config_error: FILE: a backup never overwrites a file; found '{file}'; expected a new name\n"
    )
    assert tipcflow("db", "restore", str(text)).err == (
        f"config_error: {text}: not a backup of tipcflow; found 'a file of another kind'; "
        "expected a file of `tipcflow db backup`\n"
    )
    assert tipcflow("db", "restore", str(file)).err == (
        f"config_error: the database {url} is not empty; "
        "found 'rows in attempts, environments, legs, line_states, plans, runs, series, steps'; "
        "expected an empty database\n"
        "  hint: --replace deletes its rows; make a backup of it first\n"
    )
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", elsewhere)
    result = tipcflow("db", "backup", str(tmp_path / "other"))
    assert (result.code, result.err) == (
        2,
        f"config_error: the database {elsewhere} has no tables; expected a database of tipcflow\n"
        "  hint: TIPCFLOW_DATABASE_URL and TIPCFLOW_HOME select the database\n",
    )


def test_downgrade_reports_losses_and_changes_nothing_without_yes(
    tipcflow: Callable[..., Any], database: Path
) -> None:
    url = f"sqlite:///{database}"
    with Store.open() as store:
        record_run(store)
        store.runs.create(a_run("20261121t000003-a-0000"))
    result = tipcflow("db", "downgrade", "0014")
    assert result.out.splitlines() == [
        "0016: Remove the indexes.",
        "0015: Remove the table: its rows follow from the runs.",
        "would be lost: table node_histories (0 rows)",
        f"{url}: schema {HEAD} -> 0014 (not changed)",
    ]
    assert result.err.splitlines() == [
        "refused while 1 run has no status: 20261121t000003-a-0000",
        "back up with `tipcflow db backup FILE`, then pass --yes to downgrade",
    ]
    assert migrate.current(url) == HEAD
    assert "runs are active" in tipcflow("db", "downgrade", "0014", "--yes").err
    with Store.open() as store:
        store.runs.finish("20261121t000003-a-0000", Status.CANCELLED, "", 1.0)
    facts = json.loads(tipcflow("db", "downgrade", "0014", "--yes", "--json").out)
    assert (facts["downgraded"], facts["before"], facts["after"]) == (True, HEAD, "0014")
    assert facts["tables"] == {"node_histories": 0}
    assert migrate.current(url) == "0014"
    assert tipcflow("db", "downgrade", "0014").out == f"{url} has schema 0014\n"
