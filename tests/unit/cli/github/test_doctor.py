"""`tipcflow github doctor` with a stand-in for GitHub and the real webhook."""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.github.api import GitHub, serving
from tests.support.github.tls import make_certificate
from tests.support.github.webhook import serving_webhook
from typer.testing import CliRunner

from tipcflow.cli.github.doctor import EVENTS, PERMISSIONS
from tipcflow.cli.main import app
from tipcflow.github.client import app as github_app
from tipcflow.store import Store

pytestmark = pytest.mark.slow

API = "/api/v3"


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """A complete App whose webhook is the real one, and configs for it."""
    certificate, key, pem = make_certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{tmp_path / 'tipcflow.db'}")
    connection = {"conn_type": "generic", "login": "1", "password": "secret", "extra": {"private_key": pem}}
    monkeypatch.setenv("AIRFLOW_CONN_APP", json.dumps(connection))
    Store.open().close()
    for folder, name in (("suites", "toy"), ("clusters", "local"), ("policies", "pr")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.yaml").touch()
    (tmp_path / "repositories").mkdir()
    made = GitHub()
    with serving(made, certificate=(certificate, key)) as url, serving_webhook() as hook:
        own = {"name": "o/r", "connection": "app", "suite": "toy", "cluster": "local", "api_url": url}
        (tmp_path / "repositories" / "r.yaml").write_text(yaml.safe_dump(own))
        made.app = {
            f"{API}/app": {"slug": "tipcflow", "events": list(EVENTS)},
            f"{API}/app/hook/config": {"url": hook, "secret": "********", "content_type": "json"},
            "installation": {"id": 5, "permissions": PERMISSIONS, "events": list(EVENTS)},
        }
        yield made


def look() -> tuple[int, dict[str, tuple[bool, str]]]:
    done = CliRunner().invoke(app, ["github", "doctor", "--json"])
    # The webhook's thread may log to the same stdout.
    found, _ = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    findings = found["findings"]
    return done.exit_code, {one["what"]: (one["ok"], one["found"]) for one in findings}


def test_a_complete_app_is_ok_and_the_ping_arrives(github: GitHub) -> None:
    code, found = look()
    assert {what for what, (ok, _) in found.items() if not ok} == set(), found
    assert code == 0
    assert set(found) == {
        "login",
        "app_slug",
        "events",
        "clock",
        "webhook",
        "secret",
        "content type",
        "deliveries",
        "ping",
        "permissions",
    }
    with Store.open() as store:
        assert [row.event for row in store.outbox.rows()] == ["ping"]


def test_everything_that_is_missing_is_named(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    github.app[f"{API}/app"] = {"slug": "other", "events": ["push"]}
    github.app["installation"] = {"id": 5, "permissions": {"checks": "read"}}
    github.deliveries = [
        {
            "id": 1,
            "guid": "g",
            "event": "push",
            "status_code": 502,
            "delivered_at": datetime.now(UTC).isoformat(),
            "payload": {},
        }
    ]
    kept = json.loads(os.environ["AIRFLOW_CONN_APP"])
    monkeypatch.setenv("AIRFLOW_CONN_APP", json.dumps({**kept, "password": "another"}))
    code, found = look()
    assert code == 2
    bad = {what: text for what, (ok, text) in found.items() if not ok}
    assert "app_slug" in bad
    assert "merge_group" in bad["events"]
    assert "checks: write" in bad["permissions"]
    assert "1 of 1 deliveries" in bad["deliveries"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"suspended_at": "2026-11-01T00:00:00Z"}, "unsuspend"),
        ({"events": ["push"]}, "gets no events check_run, issue_comment, merge_group, pull_request: accept"),
    ],
)
def test_unusable_installation_is_named(github: GitHub, changes: dict[str, Any], words: str) -> None:
    github.app["installation"] |= changes
    code, found = look()
    assert code == 2
    ok, text = found["permissions"]
    assert not ok
    assert words in text


def test_unverified_certificate_is_named(github: GitHub) -> None:
    github.app[f"{API}/app/hook/config"]["insecure_ssl"] = "1"
    code, found = look()
    assert (code, found["certificate"][0]) == (2, False)


@pytest.mark.parametrize("text", ["-----BEGIN RSA PRIVATE KEY-----\\n…", "other"])
def test_unusable_key_is_named(github: GitHub, tmp_path: Path, text: str) -> None:
    (tmp_path / "app.pem").write_text(text)
    done = CliRunner().invoke(app, ["github", "doctor", "--json", "--private-key", str(tmp_path / "app.pem")])
    (login,) = json.loads(done.stdout)["findings"]
    assert (login["what"], login["ok"]) == ("login", False)
    assert "the App's private key cannot be used" in login["found"]


@pytest.mark.parametrize(("ahead_s", "ok"), [(0, True), (300, False)])
def test_clock_is_checked_also_if_github_refuses_the_login(
    github: GitHub, monkeypatch: pytest.MonkeyPatch, ahead_s: int, ok: bool
) -> None:
    """GitHub refuses the login of an App whose clock is more than a minute ahead."""
    github.faults = [("GET", 401, {}, False)]
    if ahead_s:
        monkeypatch.setattr(github_app, "server_time", lambda _: time.time() - ahead_s)
    code, found = look()
    assert code == 2
    assert set(found) == {"login", "clock"}
    assert found["clock"][0] == ok
    assert ok or found["clock"][1] == "300 s ahead of GitHub's"


def test_another_secret_is_found_by_the_ping(github: GitHub, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("another\n")
    done = CliRunner().invoke(app, ["github", "doctor", "--json", "--secret", str(tmp_path / "secret.txt")])
    (ping,) = [one for one in json.loads(done.stdout)["findings"] if one["what"] == "ping"]
    assert not ping["ok"]
    assert "401" in ping["found"]


def test_without_a_login_the_doctor_names_the_settings(github: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_APP")
    code, found = look()
    assert code == 2
    assert found == {"login": (False, "set AIRFLOW_CONN_APP here, or give --app-id and --private-key")}
    monkeypatch.setenv("AIRFLOW_CONN_APP", "generic://1:secret@?private_key=x")
    code, found = look()
    assert code == 2
    assert "AIRFLOW_CONN_APP here is not JSON" in found["login"][1]
