"""The weekly report leaves by Airflow's SMTP notifier, to a real server on this machine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.mail.server import MailServer, mail_server
from tests.support.stories import open_store

from tipcflow.store import Store
from tipcflow_operators.weekly import notify
from tipcflow_operators.weekly.notify import SLACK, SMTP, send

HTML = "<html><body><h2>weekly</h2><p>{{ 7 * 7 }} a &lt;b&gt;</p></body></html>"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as made:
        yield made


def written(home: Path) -> Path:
    home.mkdir(exist_ok=True)
    (home / "weekly.md").write_text("## weekly\n")
    (home / "weekly.html").write_text(HTML)
    return home / "weekly.html"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as made:
        yield made


def configure(monkeypatch: pytest.MonkeyPatch, port: int, **extra: object) -> None:
    content = {
        "conn_type": "smtp",
        "host": "127.0.0.1",
        "port": port,
        "extra": {"disable_ssl": True, "disable_tls": True, "timeout": 5, "retry_limit": 1, **extra},
    }
    monkeypatch.setenv(f"AIRFLOW_CONN_{SMTP.upper()}", json.dumps(content))


def sent(store: Store, page: Path) -> list[str]:
    lines: list[str] = []
    attempts = send(store, "weekly: 1 failed", page, "text", lines.append)
    assert [attempt.line for attempt in attempts] == lines
    assert [attempt.is_sent for attempt in attempts] == ["was not sent" not in line for line in lines]
    return lines


def test_without_connections_nothing_is_sent(store: Store, page: Path) -> None:
    assert sent(store, page) == []


def test_a_report_is_sent_once(
    store: Store, page: Path, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, server.port, to="one@example.org, two@example.org", from_email="tipcflow@example.org")
    assert sent(store, page) == [f"{SMTP}: sent to one@example.org, two@example.org"]
    (mail,) = server.mails
    assert (mail.sender, mail.to) == ("tipcflow@example.org", ["one@example.org", "two@example.org"])
    assert mail.message["Subject"] == "weekly: 1 failed"
    body = mail.message.get_body(("html",))
    assert body is not None
    assert "{{ 7 * 7 }} a &lt;b&gt;" in body.get_content(), "reasons of runs are not templates"
    assert [part.get_filename() for part in mail.message.iter_attachments() if part.get_filename()] == [
        "weekly.md"
    ]
    assert sent(store, page) == [f"{SMTP}: this report was sent before"]
    page.write_text(HTML + "<!-- a chain was run again -->")
    sent(store, page)
    assert len(server.mails) == 2


def test_workers_with_own_homes_send_a_report_once(
    store: Store, tmp_path: Path, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, server.port, to="one@example.org", from_email="tipcflow@example.org")
    lines = [sent(store, written(tmp_path / worker)) for worker in ("first", "second")]
    assert lines == [[f"{SMTP}: sent to one@example.org"], [f"{SMTP}: this report was sent before"]]
    assert len(server.mails) == 1


def test_a_failure_is_a_line_and_is_repeated(
    store: Store, page: Path, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, server.port, to="one@example.org", from_email="tipcflow@example.org")
    server.refuse = "550 no such mailbox"
    (line,) = sent(store, page)
    assert line.startswith(f"{SMTP}: the report was not sent: ")
    assert "no such mailbox" in line
    server.refuse = ""
    assert sent(store, page) == [f"{SMTP}: sent to one@example.org"]
    configure(monkeypatch, 1, to="one@example.org", from_email="tipcflow@example.org")
    page.write_text(HTML + "<!-- 2 -->")
    (line,) = sent(store, page)
    assert "the report was not sent" in line


@pytest.mark.parametrize(
    ("extra", "key"), [({"from_email": "a@b.example"}, "to"), ({"to": "a@b.example"}, "from_email")]
)
def test_a_connection_without_an_address_is_named(
    store: Store, page: Path, monkeypatch: pytest.MonkeyPatch, extra: dict[str, str], key: str
) -> None:
    configure(monkeypatch, 1, **extra)
    (line,) = sent(store, page)
    assert f"{SMTP}: {key}: the connection lacks an extra field" in line


@pytest.mark.parametrize("password", ["T0/B0/s3cret", "https://hooks.slack.com/services/T0/B0/s3cret"])
def test_the_path_of_slacks_webhook_is_in_no_line(
    store: Store, page: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    def fail(*_: object) -> None:
        raise ConnectionError("max retries exceeded with url: /services/T0/B0/s3cret")

    monkeypatch.setenv(
        f"AIRFLOW_CONN_{SLACK.upper()}", json.dumps({"conn_type": "slackwebhook", "password": password})
    )
    monkeypatch.setattr(notify, "_slack", fail)
    (line,) = sent(store, page)
    assert (
        line == f"{SLACK}: the report was not sent: ConnectionError: max retries exceeded with url: /services/***"
    )


def test_slack_without_its_provider_is_a_line(store: Store, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{SLACK.upper()}", json.dumps({"conn_type": "slackwebhook", "password": "x"}))
    monkeypatch.setitem(__import__("sys").modules, "airflow.providers.slack", None)
    (line,) = sent(store, page)
    assert "pip install apache-airflow-providers-slack" in line
