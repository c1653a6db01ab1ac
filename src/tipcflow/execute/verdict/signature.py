"""Signs certificates with the deployment's Ed25519 key, and reads keys for their verification."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow.execute.collect.kept_files import SIGNATURE
from tipcflow.report.attestation import envelope

_KEY = "TIPCFLOW_SIGNING_KEY"


def signing_key() -> Path | None:
    """Return the file of the deployment's private key after reading it; None without TIPCFLOW_SIGNING_KEY.

    Raises:
        ConfigError: the key is not usable.
    """
    file = settings().signing_key
    if file is not None:
        _private_key(file)
    return file


def sign_certificate(made: Mapping[str, Any], file: Path, key_file: Path) -> Path:
    """Write the signature of a certificate's file next to it; return its path.

    Args:
        made: the certificate, as in `file`.
        key_file: PEM file with an Ed25519 private key without passphrase.

    Raises:
        ConfigError: the key is not usable; an earlier signature is removed, because it is for another file.
    """
    target = file.with_name(SIGNATURE)
    target.unlink(missing_ok=True)
    key = _private_key(key_file)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    signed = envelope(made, sha256=sha256, key_id=key_id(key.public_key()), sign=key.sign)
    target.write_text(json.dumps(signed, indent=1) + "\n", encoding="utf-8")
    return target


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key's DER form, as `openssl pkey -pubin -outform DER` prints it."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def verifier(file: Path) -> Callable[[bytes, bytes], bool]:
    """Return a predicate: whether the key made a signature (second argument) of bytes (first argument).

    Args:
        file: PEM file with an Ed25519 public key.

    Raises:
        ConfigError: not such a file.
    """
    try:
        key = load_pem_public_key(file.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise _not_a_key("--key", file, "public", error) from None
    if not isinstance(key, Ed25519PublicKey):
        raise _not_a_key("--key", file, "public")

    def is_signed(data: bytes, signature: bytes) -> bool:
        try:
            key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    return is_signed


def _private_key(file: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise _not_a_key(_KEY, file, "private", error) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_a_key(_KEY, file, "private")
    return key


def _not_a_key(name: str, file: Path, kind: str, error: Exception | None = None) -> ConfigError:
    """The error about a key file; never with content of the file."""
    why = error.strerror or "" if isinstance(error, OSError) else f"not an Ed25519 {kind} key"
    return ConfigError(
        f"cannot use the key: {why}",
        key=name,
        found=str(file),
        expected=f"a PEM file with an Ed25519 {kind} key" + (" without passphrase" if kind == "private" else ""),
    )
