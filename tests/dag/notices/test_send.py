"""Messages leave by Airflow's SMTP notifier and by a webhook, to real servers on this machine."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.support.mail.server import mail_server
from tests.support.stories import T0, a_run

from tipcflow.config.teams.team import Mail, Team
from tipcflow.domain import ConfigError, InfraError, Status
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow.report.notices.message import Message
from tipcflow.store import Store
from tipcflow_operators.notices.channels import send_slack
from tipcflow_operators.notices.send import send
from tipcflow_operators.notices.sweep import notices

MESSAGE = Message(
    subject="tipcflow vision: failed a",
    lines=("failed: a", "  reason: {{ 7 * 7 }} <b>"),
    links={"a": "http://af/x"},
)


class Hook:
    """An HTTP server that keeps requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.status = 204
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.requests.append((dict(self.headers), json.loads(body)))
                self.send_response(hook.status)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    made = Hook()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    content = {"conn_type": "http", "host": f"http://127.0.0.1:{made.server.server_port}/in", "password": "s3cret"}
    monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(content))
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join(10)


def mail_connection(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    extra = {"disable_ssl": True, "disable_tls": True, "timeout": 5, "retry_limit": 1}
    content = {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_MAIL", json.dumps(content))


def test_notice_is_sent_as_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    mail = Mail(connection="mail", to=("one@example.org", "two@example.org"), sender="tipcflow@example.org")
    with mail_server() as server:
        mail_connection(monkeypatch, server.port)
        send(Team(name="vision", mail=mail), MESSAGE)
        (sent,) = server.mails
        assert (sent.sender, sent.to) == ("tipcflow@example.org", ["one@example.org", "two@example.org"])
        assert sent.message["Subject"] == MESSAGE.subject
        body = sent.message.get_body(("html",))
        assert body is not None
        assert "{{ 7 * 7 }} &lt;b&gt;" in body.get_content(), "reasons of runs are not templates"
        server.refuse = "550 no such mailbox"
        with pytest.raises(InfraError, match="no such mailbox"):
            send(Team(name="vision", mail=mail), MESSAGE)


def test_notice_is_sent_to_a_webhook(hook: Hook) -> None:
    send(Team(name="vision", webhook="hook"), MESSAGE)
    ((headers, body),) = hook.requests
    assert headers["Authorization"] == "Bearer s3cret"
    assert (body["subject"], body["links"]) == (MESSAGE.subject, MESSAGE.links)


def test_without_the_provider_of_slack_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.slack", None)
    with pytest.raises(ConfigError) as error:
        send_slack("chat", "hello")
    assert str(error.value) == (
        "slack: Airflow has no provider for Slack; found 'chat'; "
        "expected pip install apache-airflow-providers-slack"
    )


def test_notice_is_sent_by_the_notifier_of_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider is optional and not installed here: its notifier is replaced by one with the same interface."""
    sent: list[dict[str, Any]] = []

    class SlackWebhookNotifier:
        def __init__(self, *, slack_webhook_conn_id: str, text: str) -> None:
            self.fields = {"connection": slack_webhook_conn_id, "text": text}

        def notify(self, context: dict[str, Any]) -> None:
            sent.append({**self.fields, "context": context})

    module = ModuleType("slack_webhook")
    module.SlackWebhookNotifier = SlackWebhookNotifier  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "airflow.providers.slack", ModuleType("slack"))
    monkeypatch.setitem(sys.modules, "airflow.providers.slack.notifications", ModuleType("notifications"))
    monkeypatch.setitem(sys.modules, "airflow.providers.slack.notifications.slack_webhook", module)
    monkeypatch.setenv("AIRFLOW_CONN_CHAT", json.dumps({"conn_type": "slackwebhook", "password": "T0/B0/s3cret"}))
    send(Team(name="vision", slack="chat"), MESSAGE)
    (message,) = sent
    assert (message["connection"], message["context"]) == ("chat", {})
    assert message["text"].startswith("*tipcflow vision: failed a*\nfailed: a\n")
    assert "{{ 7 * 7 }} &lt;b&gt;" in message["text"], "text of logs cannot mention a channel"


@pytest.mark.parametrize("status", [302, 500])
def test_a_webhook_that_refuses_is_an_error_without_the_token(hook: Hook, status: int) -> None:
    hook.status = status
    with pytest.raises(InfraError, match=str(status)) as error:
        send(Team(name="vision", webhook="hook"), MESSAGE)
    assert "s3cret" not in str(error.value)
    assert len(hook.requests) == 1


@pytest.mark.parametrize(
    "connection",
    [
        {"host": "http://127.0.0.1:9/open-apis/hook/t0ken"},
        {"host": "http://127.0.0.1:9/?key=t0ken"},
        {"host": "127.0.0.1/open-apis/hook/t0ken", "schema": "http", "port": 9},
        {"host": "http://t0ken@127.0.0.1:9"},
    ],
    ids=["path", "query", "no scheme", "user"],
)
def test_the_address_of_a_webhook_may_contain_a_token(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, object]
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PATH", json.dumps({"conn_type": "http", **connection}))
    with pytest.raises(InfraError) as error:
        send(Team(name="vision", webhook="path"), MESSAGE)
    assert "t0ken" not in str(error.value)
    assert "127.0.0.1" in str(error.value)


def test_an_http_client_that_quotes_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://127.0.0.1:9 /open-apis/hook/t0ken"
    monkeypatch.setenv("AIRFLOW_CONN_PATH", json.dumps({"conn_type": "http", "host": address}))
    with pytest.raises(InfraError) as error:
        send(Team(name="vision", webhook="path"), MESSAGE)
    assert "t0ken" not in str(error.value)


def test_a_missing_connection_is_named() -> None:
    with pytest.raises(ConfigError, match="Airflow has no such connection; found 'nowhere'"):
        send(Team(name="vision", webhook="nowhere"), MESSAGE)


def test_the_sweep_notifies_the_teams_of_the_configuration(
    tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "vision.yaml").write_text("webhook: hook\n")
    with Store.open(f"sqlite:///{tmp_path}/own.db") as store:
        store.runs.create(a_run(status=Status.FAILED, reason="loss is nan", ended_at=T0 + 9))
        messages: list[str] = []
        upkeep = Upkeep(store, tmp_path, tmp_path, None, messages.append, now=T0 + 60)  # type: ignore[arg-type]
        assert notices(upkeep) == "1 messages sent, 0 not sent; 0 of 1 teams have quiet hours"
        assert notices(upkeep) == "0 messages sent, 0 not sent; 0 of 1 teams have quiet hours"
    assert [body["began"][0]["reason"] for _, body in hook.requests] == ["loss is nan"]
    assert messages == []


def test_workers_with_own_homes_send_a_digest_once(
    tmp_path: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "vision.yaml").write_text('webhook: hook\ndigest: {day: monday, after: "00:00"}\n')
    results = []
    for worker in ("first", "second"):
        home = tmp_path / worker
        monkeypatch.setenv("TIPCFLOW_HOME", str(home))
        with Store.open(f"sqlite:///{tmp_path}/own.db") as store:
            upkeep = Upkeep(store, home, tmp_path, None, print, now=T0 + 60)  # type: ignore[arg-type]
            results.append(notices(upkeep).partition(";")[0])
    assert results == ["1 messages sent, 0 not sent", "0 messages sent, 0 not sent"]
    assert [body["subject"] for _, body in hook.requests] == ["tipcflow vision: week 2026-W47, 0 new, 0 known"]
