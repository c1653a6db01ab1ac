"""Sends the weekly report by Airflow's notifiers, to the connections that exist."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.domain import ConfigError
from tipcflow.domain.run.notices import WEEKLY_REPORT
from tipcflow_operators.notices.channels import send_mail, send_slack, without_secrets

if TYPE_CHECKING:
    from tipcflow.store import Store

# Airflow connections; without them nothing is sent.
SMTP = "tipcflow_weekly_smtp"
SLACK = "tipcflow_weekly_slack"
_HINT = "see docs/tutorial/weekly.md, Send the report"


@dataclass(frozen=True)
class Attempt:
    """What happened with one connection, and whether it has the report."""

    line: str
    is_sent: bool = True


def send(store: "Store", title: str, page: Path, text: str, note: Callable[[str], None]) -> list[Attempt]:
    """Send a report once; returns one attempt per connection.

    A report with the same content is not sent again, so a retry of the task on any worker sends no second mail.
    A failure is an attempt that is not sent, because an unavailable mail server does not change the verdict of a
    chain.

    Args:
        store: records what was sent.
        page: the report in HTML; next to it, `<name>.md` has it in Markdown.
        text: the report for Slack.
        note: receives each line.
    """
    attempts = []
    for name, send_it in ((SMTP, _mail), (SLACK, _slack)):
        connection = _connection(name)
        if connection is None:
            continue
        subject, content = f"{page.stem} {name}", {"sha256": hashlib.sha256(page.read_bytes()).hexdigest()}
        sent = store.messages.get("", WEEKLY_REPORT, subject)
        if sent is not None and sent.body == content:
            attempts.append(Attempt(f"{name}: this report was sent before"))
            continue
        try:
            attempts.append(Attempt(f"{name}: {send_it(connection, title, page, text)}"))
            store.messages.record(WEEKLY_REPORT, subject, content)
        except Exception as error:
            # A notifier raises whatever its library does.
            problem = without_secrets(f"{type(error).__name__}: {error}", connection)
            attempts.append(Attempt(f"{name}: the report was not sent: {problem}", is_sent=False))
    for attempt in attempts:
        note(attempt.line)
    return attempts


def _connection(name: str) -> Any:
    """The connection, None if it does not exist."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        return Connection.get(name)
    except AirflowException:
        return None


def _mail(connection: Any, title: str, page: Path, text: str) -> str:
    extra = connection.extra_dejson
    to = [address.strip() for address in str(extra.get("to") or "").split(",") if address.strip()]
    for key, value in (("to", to), ("from_email", extra.get("from_email"))):
        if not value:
            raise ConfigError(
                "the connection lacks an extra field", key=f"{SMTP}: {key}", found="none", hint=_HINT
            )
    send_mail(
        SMTP,
        to=to,
        sender=str(extra["from_email"]),
        subject=title,
        html=page.read_text(encoding="utf-8"),
        files=[str(page.with_suffix(".md"))],
    )
    return f"sent to {', '.join(to)}"


def _slack(connection: Any, title: str, page: Path, text: str) -> str:
    send_slack(SLACK, text)
    return "sent"
