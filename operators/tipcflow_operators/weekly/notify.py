"""Sends the weekly report by Airflow's notifiers, to the connections that exist."""

import hashlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tipcflow.domain import ConfigError
from tipcflow.domain.masking import mask

# Airflow connections; without them nothing is sent.
SMTP = "tipcflow_weekly_smtp"
SLACK = "tipcflow_weekly_slack"
_HINT = "see docs/tutorial/weekly.md, Send the report"


def send(title: str, page: Path, text: str, note: Callable[[str], None]) -> list[str]:
    """Send a report once; returns one line per connection that was tried.

    A report with the same content is not sent again, so a retry of the task sends no second mail. A failure is a
    line, because a mail server that is away does not change the verdict of a chain.

    Args:
        page: the report in HTML; beside it, `<name>.md` has it in Markdown, and `<name>.sent` what was sent.
        text: the report for Slack.
        note: receives each line.
    """
    lines = []
    for name, send_it in ((SMTP, _mail), (SLACK, _slack)):
        connection = _connection(name)
        if connection is None:
            continue
        mark = page.with_suffix(f".{name}.sent")
        digest = hashlib.sha256(page.read_bytes()).hexdigest()
        if mark.is_file() and mark.read_text(encoding="utf-8") == digest:
            lines.append(f"{name}: this report was sent before")
            continue
        try:
            lines.append(f"{name}: {send_it(connection, title, page, text)}")
            mark.write_text(digest, encoding="utf-8")
        except Exception as error:
            # A notifier raises whatever its library does.
            problem = _without_secrets(f"{type(error).__name__}: {error}", connection)
            lines.append(f"{name}: the report was not sent: {problem}")
    for line in lines:
        note(line)
    return lines


def _connection(name: str) -> Any:
    """The connection, None if it does not exist."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        return Connection.get(name)
    except AirflowException:
        return None


def _without_secrets(text: str, connection: Any) -> str:
    """Mask the password. Slack's is the path of its webhook, which HTTP clients quote in their errors."""
    password = str(connection.password or "")
    for secret in (password, password.rpartition("/services/")[2]):
        if secret:
            text = text.replace(secret, "***")
    return mask(text)


def _mail(connection: Any, title: str, page: Path, text: str) -> str:
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    extra = connection.extra_dejson
    to = [address.strip() for address in str(extra.get("to") or "").split(",") if address.strip()]
    for key, value in (("to", to), ("from_email", extra.get("from_email"))):
        if not value:
            raise ConfigError(
                "the connection lacks an extra field", key=f"{SMTP}: {key}", found="none", hint=_HINT
            )
    notifier = SmtpNotifier(
        to=to,
        from_email=str(extra["from_email"]),
        subject=title,
        html_content=page.read_text(encoding="utf-8"),
        files=[str(page.with_suffix(".md"))],
        smtp_conn_id=SMTP,
    )
    # Not called as a callback, which would render reasons of runs as Jinja templates.
    notifier.notify({})
    return f"sent to {', '.join(to)}"


def _slack(connection: Any, title: str, page: Path, text: str) -> str:
    try:
        # An optional provider: it is not in the requirements.
        notifiers = import_module("airflow.providers.slack.notifications.slack_webhook")
    except ImportError as error:
        raise ConfigError(
            "Airflow has no provider for Slack", key=SLACK, expected="pip install apache-airflow-providers-slack"
        ) from error
    notifiers.SlackWebhookNotifier(slack_webhook_conn_id=SLACK, text=text).notify({})
    return "sent"
