"""Keys that sign certificates: an unusable one is one error, and leaves no signature of another certificate."""

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tipcflow.domain import ConfigError
from tipcflow.execute.verdict.signature import key_id, sign_certificate

GOLDEN = Path(__file__).parents[3] / "golden" / "report" / "certificate.json"


def test_an_unusable_key_is_one_error_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_text(GOLDEN.read_text())
    curve = generate_private_key(SECP256R1())
    other = tmp_path / "ec.pem"
    other.write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    text = tmp_path / "text.pem"
    text.write_text("hunter2")
    for key, why in ((other, "not an Ed25519"), (text, "not an Ed25519"), (tmp_path / "no.pem", "No such file")):
        (tmp_path / "certificate.dsse.json").write_text("of an earlier certificate")
        with pytest.raises(ConfigError, match=f"TIPCFLOW_SIGNING_KEY: cannot use the key: {why}") as caught:
            sign_certificate(json.loads(file.read_text()), file, key)
        assert "hunter2" not in str(caught.value)
        assert not (tmp_path / "certificate.dsse.json").exists()


def test_a_key_has_the_name_that_openssl_computes() -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert key_id(key) == hashlib.sha256(der).hexdigest()
