"""From the headers and bytes of a request to a verified event, or a refusal with an HTTP status.

Nothing in the body is read before its signature is verified.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain.numbers.units import size
from tipcflow.github.webhook.events import Event, InstallationEvent, PingEvent, event_of

# GitHub's own limit of a payload.
LARGEST_BODY = 25 << 20
_SIGNATURE = re.compile(r"^sha256=([0-9a-f]{64})$")
_DELIVERY = re.compile(r"^[0-9A-Fa-f-]{16,64}$")
_EVENT = re.compile(r"^[a-z0-9_]{1,64}$")


class Cause(StrEnum):
    """Why a delivery was refused or ignored."""

    CONTENT_TYPE = "content_type"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    HEADERS = "headers"
    NO_SECRET = "no_secret"  # noqa: S105
    SIGNATURE = "signature"
    BODY = "body"
    REPOSITORY = "repository"
    UNUSED = "unused"


@dataclass(frozen=True)
class Headers:
    """The headers of a delivery that are used, each '' if it is missing."""

    event: str
    delivery: str
    signature: str
    content_type: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Headers":
        """From a request's headers, whose names are case-insensitive."""
        return cls(
            event=headers.get("x-github-event", ""),
            delivery=headers.get("x-github-delivery", ""),
            signature=headers.get("x-hub-signature-256", ""),
            content_type=headers.get("content-type", "").partition(";")[0].strip().lower(),
        )


@dataclass(frozen=True)
class Refused:
    """A delivery that starts nothing.

    Attributes:
        status: HTTP status of the response; 202 for a valid delivery that is not used.
        reason: for the response and the log; contains nothing of the body.
    """

    cause: Cause
    status: int
    reason: str


@dataclass(frozen=True)
class Accepted:
    """A verified delivery.

    Attributes:
        body_sha256: of the raw bytes: a replay with another delivery id has the same one, because the signature
            does not cover the headers.
        repository: None for events of the App itself (ping, installation).
    """

    name: str
    delivery: str
    body_sha256: str
    connection: str
    event: Event
    repository: Repository | None


def unusable(headers: Headers, length: str = "") -> Refused | None:
    """Why the request can be refused before its body is read; None if it cannot.

    Args:
        length: header Content-Length.
    """
    if headers.content_type != "application/json":
        return Refused(Cause.CONTENT_TYPE, 415, "content type must be application/json")
    if length.isascii() and length.isdigit() and int(length) > LARGEST_BODY:
        return too_large()
    if not _EVENT.match(headers.event) or not _DELIVERY.match(headers.delivery):
        return Refused(Cause.HEADERS, 400, "X-GitHub-Event or X-GitHub-Delivery is missing or invalid")
    if not _SIGNATURE.match(headers.signature):
        return Refused(Cause.SIGNATURE, 401, "X-Hub-Signature-256 is missing or invalid")
    return None


def too_large() -> Refused:
    """The refusal of a body over the limit."""
    return Refused(Cause.TOO_LARGE, 413, f"body is larger than {size(LARGEST_BODY)}")


def too_slow(limit_s: float) -> Refused:
    """The refusal of a body that does not arrive in time; its sender is not verified, and keeps a connection."""
    return Refused(Cause.TOO_SLOW, 408, f"body did not arrive within {limit_s:.0f} s")


def cut_off() -> Refused:
    """The refusal of a body whose sender closed the connection."""
    return Refused(Cause.BODY, 400, "body ended early")


def signature(secret: bytes, body: bytes) -> str:
    """The value of X-Hub-Signature-256."""
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def receive(
    headers: Headers, body: bytes, repositories: Repositories, secrets: Mapping[str, bytes]
) -> Accepted | Refused:
    """Verify a delivery and reduce it to its event.

    Args:
        secrets: connection -> webhook secret; a connection without a secret verifies nothing.
    """
    refused = too_large() if len(body) > LARGEST_BODY else unusable(headers)
    if refused:
        return refused
    connection = _signer(headers.signature, body, secrets)
    if connection is None:
        if not any(secrets.values()):
            return Refused(Cause.NO_SECRET, 503, "no connection of configs/repositories has a webhook secret")
        return Refused(Cause.SIGNATURE, 401, "the signature does not match")
    return _verified(headers, body, connection, repositories)


def _signer(header: str, body: bytes, secrets: Mapping[str, bytes]) -> str | None:
    """The connection whose secret signed the body; all are tried, so that the time reveals nothing."""
    match = None
    for connection, secret in secrets.items():
        same = hmac.compare_digest(signature(secret, body), header)
        if secret and same and match is None:
            match = connection
    return match


def _verified(headers: Headers, body: bytes, connection: str, repositories: Repositories) -> Accepted | Refused:
    unused = Refused(Cause.UNUSED, 202, f"event {headers.event} is not used, or this action of it")
    try:
        payload: Any = json.loads(body)
        if not isinstance(payload, dict):
            return Refused(Cause.BODY, 400, "body is not a JSON object")
        event = event_of(headers.event, payload)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        return Refused(Cause.BODY, 400, _problem(headers.event, error))
    if event is None:
        return unused
    repository = repositories.of(connection, event.repository)
    if repository is None and not isinstance(event, PingEvent | InstallationEvent):
        return Refused(Cause.REPOSITORY, 404, "no file of configs/repositories has this repository and connection")
    digest = hashlib.sha256(body).hexdigest()
    return Accepted(headers.event, headers.delivery.lower(), digest, connection, event, repository)


def _problem(event: str, error: Exception) -> str:
    """Field names of the invalid fields; no values."""
    if isinstance(error, ValidationError):
        fields = sorted({".".join(map(str, problem["loc"])) for problem in error.errors(include_input=False)})
        return f"event {event}: missing or invalid field: {', '.join(fields)[:200]}"
    return f"body of event {event} cannot be read ({type(error).__name__})"
