import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.bad_day import tell_failure
from tests.support.stories import tell

from tipcflow.domain.run_documents import CertificateDocument
from tipcflow.store import Store, migrate


def test_current_then_upgrade(tipcflow: Callable[..., Any], home: Path) -> None:
    url = f"sqlite:///{home}/tipcflow.db"
    said = tipcflow("db", "current")
    assert said.out == f"{url}: schema none, this version of tipcflow requires {migrate.head()}\n"
    assert "tipcflow db upgrade" in said.err
    assert json.loads(tipcflow("db", "upgrade", "--json").out) == {
        "url": url,
        "before": "",
        "after": migrate.head(),
    }
    assert tipcflow("db", "upgrade").out == f"{url} is up to date (schema {migrate.head()})\n"
    said = tipcflow("db", "current", "--json")
    assert json.loads(said.out) == {"url": url, "current": migrate.head(), "head": migrate.head()}
    assert said.err == ""


def test_the_password_is_not_printed(tipcflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "postgresql://me:hunter2@/x?host=/nowhere")
    for command in (["db", "current"], ["db", "upgrade"], ["runs"]):
        said = tipcflow(*command)
        assert said.code == 2
        assert said.err.startswith("infra_failure: cannot use the database postgresql://me:***@/x?host=/nowhere: ")
        assert "hunter2" not in said.err + said.out
        assert "Traceback" not in said.err


def test_the_certificate_is_printed_as_the_file_holds_it(tipcflow: Callable[..., Any], home: Path) -> None:
    with Store.open() as store:
        run = tell_failure(store, home)
        tell(store)
    said = tipcflow("certificate", "show", "20261122")
    assert said.code == 0
    assert json.loads(said.out) == {"schema_version": 1, "run": run.id, "verdict": "failed"}
    assert tipcflow("certificate", "show", "20261122", "--json").out == said.out
    said = tipcflow("certificate", "show", "20261121")
    assert (said.code, said.out) == (2, "")
    assert "has no certificate" in said.err


def test_a_certificate_is_verified(tipcflow: Callable[..., Any], tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "report" / "certificate.json"
    mine = tmp_path / "certificate.json"
    mine.write_text(golden.read_text())
    said = tipcflow("certificate", "verify", str(mine))
    assert (said.code, ": valid (" in said.out) == (0, True), said.err
    mine.write_text(golden.read_text().replace('"pass"', '"failed"', 1))
    said = tipcflow("certificate", "verify", str(mine))
    assert said.code == 1
    assert "was changed" in said.out
    mine.write_text("nothing")
    said = tipcflow("certificate", "verify", str(mine))
    assert said.code == 2
    assert "is not a certificate" in said.err


def test_the_certificate_of_a_run_is_verified(tipcflow: Callable[..., Any], home: Path) -> None:
    with Store.open() as store:
        run = tell(store)
    said = tipcflow("certificate", "verify", "latest")
    assert said.code == 2
    assert f"{run.id}/certificate.json: run {run.id} has no certificate here" in said.err
    golden = Path(__file__).parents[2] / "golden" / "report" / "certificate.json"
    file = home / "runs" / run.id / "certificate.json"
    file.parent.mkdir(parents=True)
    file.write_text(golden.read_text())
    said = tipcflow("certificate", "verify", run.id[:10])
    assert (said.code, said.out.startswith(f"{file}: valid (")) == (0, True), said.err
    assert "no such run" in tipcflow("certificate", "verify", "2027").err


def test_a_certificate_is_shown_as_markdown_and_junit(tipcflow: Callable[..., Any], home: Path) -> None:
    with Store.open() as store:
        run = tell(store)
        store.documents.put(run.id, CertificateDocument({"run": run.id}))
    said = tipcflow("certificate", "show", run.id, "--format", "markdown")
    assert (said.code, said.out.startswith("## pass: ")) == (0, True), said.err
    assert run.id in said.out
    said = tipcflow("certificate", "show", run.id, "--format", "junit")
    assert (said.code, said.out.startswith("<?xml"), f'name="{run.id}"' in said.out) == (0, True, True)
    said = tipcflow("certificate", "show", run.id, "--format", "junit", "--json")
    assert (said.code, "--json, --format" in said.err) == (2, True)
