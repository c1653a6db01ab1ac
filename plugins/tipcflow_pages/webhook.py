"""FastAPI app of the webhook: no login, because every delivery is signed (docs/reference/github.md).

It is an app of its own, so that no other route can be reached without a login.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import cache, lru_cache
from time import monotonic

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from tipcflow.config.repository import Repositories, load_repositories
from tipcflow.config.settings import settings
from tipcflow.domain import TipcflowError
from tipcflow.domain.masking import mask
from tipcflow.github.webhook import Accepted, Headers, Refused, receive
from tipcflow.github.webhook.delivery import LARGEST_BODY, cut_off, too_large, too_slow, unusable
from tipcflow.store.engine import reachable
from tipcflow.store.outbox import Outbox
from tipcflow_pages.secrets import connection_password

_log = logging.getLogger(__name__)
# A changed secret or configuration is in force after this time.
FRESH_S = 15.0
_LONGEST_ID = 64
# GitHub ends a delivery after 10 s.
BODY_S = 10.0


@cache
def the_webhook() -> FastAPI:
    """Return the app of this process."""
    return create_webhook()


def create_webhook() -> FastAPI:
    """Create the app with its only route."""
    app = FastAPI(title="Certification webhook", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_api_route("/github", github, methods=["POST"])
    return app


async def github(request: Request) -> JSONResponse:
    """Receive one delivery: verify it, add it to the outbox, respond. Airflow does the rest."""
    headers = Headers.of(request.headers)
    refused = unusable(headers, request.headers.get("content-length", ""))
    body = refused or await _body(request)
    if isinstance(body, Refused):
        return _refuse(headers, body)
    return await run_in_threadpool(_handle, headers, body)


async def _body(request: Request) -> bytes | Refused:
    """The raw bytes, or why they are not read to their end: until now, anyone may have sent them."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                size += len(part)
                if size > LARGEST_BODY:
                    return too_large()
                parts.append(part)
    except TimeoutError:
        return too_slow(BODY_S)
    except ClientDisconnect:
        return cut_off()
    return b"".join(parts)


def _handle(headers: Headers, body: bytes) -> JSONResponse:
    try:
        repositories, secrets = configured(int(monotonic() // FRESH_S))
        received = receive(headers, body, repositories, secrets)
        if isinstance(received, Refused):
            return _refuse(headers, received)
        added = _add(received)
    except TipcflowError as error:
        # The configuration or the database: GitHub shows the delivery as failed, and it is fetched again later.
        _log.error("webhook: delivery %s is not stored: %s", _shown(headers.delivery), error.message)
        return JSONResponse({"detail": "the delivery cannot be stored now"}, status_code=503)
    outcome = "stored" if added else "duplicate"
    _log.info("webhook: delivery %s, event %s: %s", _shown(headers.delivery), headers.event, outcome)
    return JSONResponse({"outcome": outcome}, status_code=202 if added else 200)


def _add(received: Accepted) -> bool:
    url = settings().database_url
    with reachable(url):
        return _outbox(url).add(
            delivery=received.delivery,
            body_sha256=received.body_sha256,
            connection=received.connection,
            repository=received.repository.name if received.repository else "",
            event=received.name,
            body=received.event.model_dump(mode="json"),
        )


@lru_cache(maxsize=4)
def _outbox(url: str) -> Outbox:
    return Outbox.for_webhook(url)


@lru_cache(maxsize=2)
def configured(_: int) -> tuple[Repositories, Mapping[str, bytes]]:
    """Return the repositories and the secret of each connection, read again after `FRESH_S`.

    Raises:
        ConfigError: a file of configs/repositories is invalid.
    """
    repositories = load_repositories(settings().config_dir)
    return repositories, {name: secret_of(name) for name in repositories.connections()}


def secret_of(connection: str) -> bytes:
    """Return the webhook secret of an Airflow connection, empty if there is none."""
    secret = connection_password(connection)
    if secret is None:
        _log.error("webhook: Airflow has no connection %s, named in configs/repositories", connection)
    return secret or b""


def _refuse(headers: Headers, refused: Refused) -> JSONResponse:
    level = logging.INFO if refused.status < 400 else logging.WARNING
    _log.log(level, "webhook: delivery %s: %s: %s", _shown(headers.delivery), refused.cause, refused.reason)
    return JSONResponse({"detail": refused.reason, "cause": refused.cause}, status_code=refused.status)


def _shown(delivery: str) -> str:
    """The delivery id for the log: it is not verified, so only its printable part."""
    return mask(ascii(delivery)[: _LONGEST_ID + 2])
