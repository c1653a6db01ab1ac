"""Mail and Slack by Airflow's notifiers, and errors of notifiers without secrets."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from tipcflow.domain import ConfigError
from tipcflow.domain.masking import mask


def without_secrets(text: str, connection: Any) -> str:
    """Mask the password, and the path of a webhook, which may be a token: HTTP clients quote both in their errors.

    Slack's password is the path of its webhook.
    """
    password, address = str(connection.password or ""), address_of(connection)
    parts = urlsplit(address)
    token = parts._replace(scheme="", netloc="").geturl()
    for quoted, shown in ((address, f"{origin_of(address)}/***"), (token, "/***")):
        if len(token) > 1:
            text = text.replace(quoted, shown)
    for secret in (password, password.rpartition("/services/")[2]):
        if secret:
            text = text.replace(secret, "***")
    return mask(text)


def address_of(connection: Any) -> str:
    """The URL of an HTTP connection: its host, which may begin with a scheme, and may have a path."""
    address = str(connection.host or "")
    if address.startswith(("https://", "http://")):
        return address
    host, slash, path = address.partition("/")
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or 'https'}://{host}{port}{slash}{path}"


def origin_of(address: str) -> str:
    """Scheme, host and port of an address, without user, path and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def send_mail(
    connection: str, *, to: Sequence[str], sender: str, subject: str, html: str, files: Sequence[str] = ()
) -> None:
    """Send a mail through an SMTP connection.

    Raises:
        Exception: whatever the notifier raises.
    """
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    notifier = SmtpNotifier(
        to=list(to),
        from_email=sender,
        subject=subject,
        html_content=html,
        files=list(files),
        smtp_conn_id=connection,
    )
    # Not called as a callback, which would render reasons of runs as Jinja templates.
    notifier.notify({})


def slack_text(text: str) -> str:
    """Escape Slack's special characters: text of logs cannot mention channels or hide an address in a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def send_slack(connection: str, text: str) -> None:
    """Send a message through a connection of a Slack webhook.

    Args:
        text: Slack's markup; `slack_text` escapes text of any other origin.

    Raises:
        ConfigError: Airflow has no provider for Slack.
        Exception: whatever the notifier raises.
    """
    try:
        # An optional provider: it is not in the requirements.
        notifiers = import_module("airflow.providers.slack.notifications.slack_webhook")
    except ImportError as error:
        raise ConfigError(
            "Airflow has no provider for Slack",
            key="slack",
            found=connection,
            expected="pip install apache-airflow-providers-slack",
        ) from error
    notifiers.SlackWebhookNotifier(slack_webhook_conn_id=connection, text=text).notify({})
