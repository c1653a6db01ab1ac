"""Sends messages by Airflow's notifiers and connections."""

import json
from importlib import import_module
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tipcflow.config.teams.team import Mail, Team
from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.masking import mask
from tipcflow.report.notices.message import Message

# Seconds for a webhook's response.
WEBHOOK_S = 20.0
_HINT = "see docs/tutorial/notifications.md"


def send(team: Team, message: Message) -> None:
    """Send a message to a team's mail addresses, Slack channel or webhook.

    Raises:
        Exception: it was not sent; the notifier's error, without secrets of the connection.
    """
    name = team.mail.connection if team.mail else team.slack or team.webhook
    connection = _connection(name)
    try:
        if team.mail:
            _mail(team.mail, message)
        elif team.slack:
            _slack(team.slack, message)
        else:
            _webhook(connection, message)
    except Exception as error:
        # A notifier raises whatever its library does.
        raise InfraError(_without_secrets(f"{type(error).__name__}: {error}", connection)) from None


def _connection(name: str) -> Any:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        return Connection.get(name)
    except AirflowException as error:
        raise ConfigError(
            "Airflow has no such connection", key="connection", found=name, expected="an existing one", hint=_HINT
        ) from error


def _without_secrets(text: str, connection: Any) -> str:
    """Mask the password, and the path of a webhook, which may be a token: HTTP clients quote both in their errors.

    Slack's password is the path of its webhook.
    """
    password, address = str(connection.password or ""), _address(connection)
    parts = urlsplit(address)
    token = parts._replace(scheme="", netloc="").geturl()
    for quoted, shown in ((address, f"{_origin(address)}/***"), (token, "/***")):
        if len(token) > 1:
            text = text.replace(quoted, shown)
    for secret in (password, password.rpartition("/services/")[2]):
        if secret:
            text = text.replace(secret, "***")
    return mask(text)


def _mail(mail: Mail, message: Message) -> None:
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    notifier = SmtpNotifier(
        to=list(mail.to),
        from_email=mail.sender,
        subject=message.subject,
        html_content=message.html,
        smtp_conn_id=mail.connection,
    )
    # Not called as a callback, which would render reasons of runs as Jinja templates.
    notifier.notify({})


def _slack(connection: str, message: Message) -> None:
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
    text = f"*{message.subject}*\n{message.text}"
    notifiers.SlackWebhookNotifier(slack_webhook_conn_id=connection, text=text).notify({})


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _address(connection: Any) -> str:
    """The URL of an HTTP connection: its host, which may begin with a scheme, and may have a path."""
    address = str(connection.host or "")
    if address.startswith(("https://", "http://")):
        return address
    host, slash, path = address.partition("/")
    port = f":{connection.port}" if connection.port else ""
    return f"{connection.schema or 'https'}://{host}{port}{slash}{path}"


def _origin(address: str) -> str:
    """Scheme, host and port of an address, without user, path and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _webhook(connection: Any, message: Message) -> None:
    """POST the message as JSON to the connection's host; its password is the bearer token."""
    address = _address(connection)
    body = {"subject": message.subject, "text": message.text, "links": message.links, **message.facts}
    headers = {"Content-Type": "application/json"}
    if connection.password:
        headers["Authorization"] = f"Bearer {connection.password}"
    request = Request(address, json.dumps(body).encode(), headers, method="POST")  # noqa: S310  # http or https
    try:
        with build_opener(_NoRedirect).open(request, timeout=WEBHOOK_S):
            pass
    except URLError as error:
        raise InfraError(f"POST {_origin(address)}: {error}") from error
