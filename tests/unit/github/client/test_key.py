"""Keys that can and cannot sign."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tipcflow.domain import ConfigError
from tipcflow.github.client.key import require_key

PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
PLAIN = serialization.NoEncryption()


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def test_private_rsa_key_is_accepted(key: rsa.RSAPrivateKey) -> None:
    for form in (PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
        text = key.private_bytes(PEM, form, PLAIN).decode()
        assert require_key(text) == text


def test_keys_that_cannot_sign_are_errors_without_the_key(key: rsa.RSAPrivateKey) -> None:
    public = key.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    texts = {
        "": "not a private key",
        "garbage": "not a private key",
        key.private_bytes(PEM, PKCS8, PLAIN).decode().replace("\n", "\\n"): "not a private key",
        public.decode(): "not a private key",
        key.private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"x")).decode(): "with a password",
        ec.generate_private_key(ec.SECP256R1()).private_bytes(PEM, PKCS8, PLAIN).decode(): "another kind",
    }
    for text, words in texts.items():
        with pytest.raises(ConfigError) as caught:
            require_key(text)
        assert words in str(caught.value)
        assert not text or text not in str(caught.value)
