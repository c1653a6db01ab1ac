"""The App's private key."""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tipcflow.domain import ConfigError


def require_key(text: str) -> str:
    """The key, if it can sign: otherwise the first request fails with an error of the cryptographic library.

    Raises:
        ConfigError: it is not a private RSA key in PEM form without a password; the error does not contain it.
    """
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except TypeError:
        kind = "a key with a password"
    except (ValueError, UnsupportedAlgorithm):
        kind = "text that is not a private key"
    else:
        if isinstance(key, RSAPrivateKey):
            return text
        kind = "another kind of key"
    raise ConfigError(
        "the App's private key cannot be used",
        found=kind,
        expected="the whole file that GitHub generated, with its line breaks (in JSON: \\n)",
    )
