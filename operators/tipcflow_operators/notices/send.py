"""Sends messages by Airflow's notifiers and connections."""

import json
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tipcflow.config.teams.team import Team
from tipcflow.domain import ConfigError, InfraError
from tipcflow.report.notices.message import Message
from tipcflow_operators.notices.channels import (
    address_of,
    origin_of,
    send_mail,
    send_slack,
    slack_text,
    without_secrets,
)

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
            to, sender = team.mail.to, team.mail.sender
            send_mail(name, to=to, sender=sender, subject=message.subject, html=message.html)
        elif team.slack:
            send_slack(name, f"*{slack_text(message.subject)}*\n{slack_text(message.text)}")
        else:
            _webhook(connection, message)
    except Exception as error:
        # A notifier raises whatever its library does.
        raise InfraError(without_secrets(f"{type(error).__name__}: {error}", connection)) from None


def _connection(name: str) -> Any:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        return Connection.get(name)
    except AirflowException as error:
        raise ConfigError(
            "Airflow has no such connection",
            key="connection",
            found=name,
            expected="the ID of a connection in Airflow",
            hint=_HINT,
        ) from error


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _webhook(connection: Any, message: Message) -> None:
    """POST the message as JSON to the connection's host; its password is the bearer token."""
    address = address_of(connection)
    body = {"subject": message.subject, "text": message.text, "links": message.links, **message.facts}
    headers = {"Content-Type": "application/json"}
    if connection.password:
        headers["Authorization"] = f"Bearer {connection.password}"
    request = Request(address, json.dumps(body).encode(), headers, method="POST")  # noqa: S310  # http or https
    try:
        with build_opener(_NoRedirect).open(request, timeout=WEBHOOK_S):
            pass
    except URLError as error:
        raise InfraError(f"POST {origin_of(address)}: {error}") from error
