"""The signed form of a certificate: an in-toto statement about the file, in a DSSE envelope.

Any verifier of DSSE checks it: the signature covers the payload's type and bytes, and the statement names the
certificate's file by its SHA-256.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tipcflow.report.canonical import canonical

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:tipcflow:certificate:1"


@dataclass(frozen=True)
class Signature:
    """One signature of an envelope; `key_id` only helps to find the key, it proves nothing."""

    key_id: str
    value: bytes


@dataclass(frozen=True)
class Attested:
    """What an envelope states, before any signature was checked.

    Attributes:
        signed: the bytes that the signatures cover.
        sha256: of the certificate's file.
        status: of the run, as stated.
        run: ID of the run, as stated.
        subject: name of the certificate's file, as stated.
    """

    signed: bytes
    signatures: tuple[Signature, ...]
    sha256: str
    status: str
    run: str
    subject: str


def envelope(
    made: Mapping[str, Any], *, sha256: str, key_id: str, sign: Callable[[bytes], bytes]
) -> dict[str, Any]:
    """Return the DSSE envelope of a certificate, as JSON values.

    Args:
        made: the certificate.
        sha256: of its file.
        key_id: name of the key.
        sign: returns the signature of the bytes.
    """
    verdict = made["verdict"]
    payload = canonical(
        {
            "_type": STATEMENT,
            "subject": [{"name": _subject(verdict["run"]), "digest": {"sha256": sha256}}],
            "predicateType": PREDICATE,
            "predicate": {
                **{name: verdict[name] for name in ("run", "chain", "status", "reason")},
                "suite": made["suite"],
                "sha256": made["sha256"],
            },
        }
    )
    signature = sign(_covered(PAYLOAD_TYPE, payload))
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key_id, "sig": base64.b64encode(signature).decode()}],
    }


def attested(document: Any) -> Attested:
    """Return what an envelope states.

    Raises:
        ValueError: it is not a DSSE envelope about a certificate; the message states the reason.
    """
    try:
        kind, payload = document["payloadType"], base64.b64decode(document["payload"], validate=True)
        signatures = tuple(
            Signature(str(entry.get("keyid", "")), base64.b64decode(entry["sig"], validate=True))
            for entry in document["signatures"]
        )
        if kind != PAYLOAD_TYPE:
            raise ValueError(f"payload of type {kind!r}, expected {PAYLOAD_TYPE!r}")
        statement = json.loads(payload)
        if (statement["_type"], statement["predicateType"]) != (STATEMENT, PREDICATE):
            raise ValueError("not a statement about a certificate")
        (subject,) = statement["subject"]
        stated, name = subject["digest"]["sha256"], subject["name"]
        status, run = (statement["predicate"][field] for field in ("status", "run"))
    except (KeyError, TypeError, AttributeError, binascii.Error, json.JSONDecodeError) as error:
        raise ValueError(f"not a DSSE envelope: {error}") from error
    except RecursionError:
        raise ValueError("not a DSSE envelope: its payload is nested too deeply") from None
    return Attested(_covered(kind, payload), signatures, str(stated), str(status), str(run), str(name))


def problems_of(
    document: Any, *, sha256: str, status: str, run: str, is_signed: Iterable[Callable[[bytes, bytes], bool]]
) -> list[str]:
    """Return the problems of an envelope; empty if a given key has signed this certificate.

    Args:
        sha256: of the certificate's file.
        status: the certificate's status.
        run: ID of the certificate's run.
        is_signed: one function per accepted key: whether it made this signature (second) of these bytes (first).
    """
    try:
        stated = attested(document)
    except ValueError as error:
        return [f"the signature is not readable: {error}"]
    keys = tuple(is_signed)
    if not any(check(stated.signed, signature.value) for check in keys for signature in stated.signatures):
        return ["the signature is not valid for the given key: another key signed it, or it was changed"]
    if stated.sha256 != sha256:
        return ["the signature is for another certificate: the file's SHA-256 differs"]
    problems = []
    if stated.status != status:
        problems.append(f"the signature states {stated.status}; the certificate {status}")
    if (stated.run, stated.subject) != (run, _subject(run)):
        problems.append(
            f"the signature is for run {stated.run} ({stated.subject}); the certificate is of run {run}"
        )
    return problems


def _subject(run: str) -> str:
    """Return the name of a run's certificate in its statement."""
    return f"{run}/certificate.json"


def _covered(kind: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding of DSSE version 1."""
    name = kind.encode()
    return b" ".join((b"DSSEv1", str(len(name)).encode(), name, str(len(payload)).encode(), payload))
