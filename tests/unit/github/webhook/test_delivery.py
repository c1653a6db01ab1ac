"""Verification: only a body that one of the secrets signed, of a configured repository, is accepted."""

import copy
import json
import random
from typing import Any

import pytest
from tests.support.github.mutations import mutate

from tipcflow.config.repository import Repositories
from tipcflow.github.webhook import Accepted, Headers, Refused, receive
from tipcflow.github.webhook.delivery import LARGEST_BODY, Cause, signature

Payloads = dict[str, list[dict[str, Any]]]
SECRET = b"It's a Secret to Everybody"
SECRETS = {"app": SECRET}
ID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"


def headers(name: str, body: bytes, secret: bytes = SECRET, **changes: str) -> Headers:
    values = {
        "event": name,
        "delivery": ID,
        "signature": signature(secret, body),
        "content_type": "application/json",
    }
    return Headers(**{**values, **changes})


@pytest.fixture
def opened(payloads: Payloads) -> bytes:
    payload = next(one for one in payloads["pull_request"] if one["action"] == "opened")
    return json.dumps(payload).encode()


def test_the_signature_is_that_of_githubs_documentation() -> None:
    expected = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert signature(SECRET, b"Hello, World!") == f"sha256={expected}"


def test_a_signed_delivery_is_accepted(opened: bytes, repositories: Repositories) -> None:
    received = receive(headers("pull_request", opened), opened, repositories, SECRETS)
    assert isinstance(received, Accepted)
    assert (received.connection, received.delivery) == ("app", ID)
    assert received.repository is not None


@pytest.mark.parametrize(
    ("changes", "cause", "status"),
    [
        ({"signature": ""}, Cause.SIGNATURE, 401),
        ({"signature": "sha256=" + "0" * 64}, Cause.SIGNATURE, 401),
        ({"signature": "sha1=" + "0" * 40}, Cause.SIGNATURE, 401),
        ({"content_type": "application/x-www-form-urlencoded"}, Cause.CONTENT_TYPE, 415),
        ({"content_type": ""}, Cause.CONTENT_TYPE, 415),
        ({"delivery": ""}, Cause.HEADERS, 400),
        ({"delivery": "x' OR 1=1"}, Cause.HEADERS, 400),
        ({"event": "Pull Request"}, Cause.HEADERS, 400),
        ({"event": "star"}, Cause.UNUSED, 202),
    ],
)
def test_deliveries_with_invalid_headers_are_refused(
    opened: bytes, repositories: Repositories, changes: dict[str, str], cause: Cause, status: int
) -> None:
    received = receive(headers("pull_request", opened, **changes), opened, repositories, SECRETS)
    assert isinstance(received, Refused)
    assert (received.cause, received.status) == (cause, status)


def test_body_with_a_changed_byte_is_refused(opened: bytes, repositories: Repositories) -> None:
    signed = headers("pull_request", opened)
    for at in random.Random(1).sample(range(len(opened)), 50):
        changed = opened[:at] + bytes([opened[at] ^ 1]) + opened[at + 1 :]
        received = receive(signed, changed, repositories, SECRETS)
        assert isinstance(received, Refused)
        assert received.cause is Cause.SIGNATURE


def test_an_empty_secret_verifies_nothing(opened: bytes, repositories: Repositories) -> None:
    received = receive(headers("pull_request", opened, b""), opened, repositories, {"app": b""})
    assert isinstance(received, Refused)
    assert (received.cause, received.status) == (Cause.NO_SECRET, 503)
    other = receive(headers("pull_request", opened, b""), opened, repositories, {"app": b"", "other": b"s"})
    assert isinstance(other, Refused)
    assert other.cause is Cause.SIGNATURE


def test_the_secret_of_another_connection_opens_no_repository(opened: bytes, repositories: Repositories) -> None:
    received = receive(headers("pull_request", opened, b"s2"), opened, repositories, {**SECRETS, "second": b"s2"})
    assert isinstance(received, Refused)
    assert (received.cause, received.status) == (Cause.REPOSITORY, 404)


def test_a_body_over_the_limit_is_refused(repositories: Repositories) -> None:
    body = b"{" + b" " * LARGEST_BODY + b"}"
    received = receive(headers("push", body), body, repositories, SECRETS)
    assert isinstance(received, Refused)
    assert (received.cause, received.status) == (Cause.TOO_LARGE, 413)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b"\xff\xfe", b"[" * 100_000, b'{"action": {}}'])
def test_signed_nonsense_is_a_bad_request(body: bytes, repositories: Repositories) -> None:
    received = receive(headers("push", body), body, repositories, SECRETS)
    assert isinstance(received, Refused)
    assert (received.cause, received.status) == (Cause.BODY, 400)


def test_every_example_is_accepted_or_refused_without_a_server_error(payloads: Payloads) -> None:
    outcomes: dict[str, int] = {}
    for name, examples in payloads.items():
        for payload in examples:
            full = str((payload.get("repository") or {}).get("full_name", ""))
            known = _one_repository(full)
            body = json.dumps(payload).encode()
            received = receive(headers(name, body), body, known, SECRETS)
            word = "accepted" if isinstance(received, Accepted) else received.cause
            outcomes[word] = outcomes.get(word, 0) + 1
    assert set(outcomes) == {"accepted", Cause.UNUSED}
    assert sum(outcomes.values()) == 329


def test_mutated_examples_never_raise(payloads: Payloads, repositories: Repositories) -> None:
    """Signed bodies with fields removed, or replaced by values of another type."""
    chance = random.Random(7)
    for name in ("pull_request", "push", "issue_comment", "check_run", "merge_group", "installation", "ping"):
        for payload in payloads[name]:
            for _ in range(6):
                changed = copy.deepcopy(payload)
                mutate(changed, chance)
                body = json.dumps(changed).encode()
                received = receive(headers(name, body), body, repositories, SECRETS)
                if isinstance(received, Refused):
                    assert received.status in (202, 400, 404)


def test_a_refusal_contains_no_value_of_the_body(payloads: Payloads, repositories: Repositories) -> None:
    payload = copy.deepcopy(payloads["pull_request"][0])
    payload["action"] = "opened"
    payload["pull_request"]["head"]["sha"] = "hunter2"
    body = json.dumps(payload).encode()
    received = receive(headers("pull_request", body), body, repositories, SECRETS)
    assert isinstance(received, Refused)
    assert "hunter2" not in received.reason
    assert "head" in received.reason


def _one_repository(name: str) -> Repositories:
    from tipcflow.config.repository import Repository

    if "/" not in name:
        return Repositories({})
    return Repositories({"one": Repository(name=name, connection="app", suite="toy", cluster="two")})
