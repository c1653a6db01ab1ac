"""SSH connections of Airflow, read without Airflow: from variables or an exported file."""

import base64
import binascii
import getpass
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import paramiko

from tipcflow.config.settings import settings
from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.transport.ssh_errors import Route
from tipcflow.transport.target import DEFAULT_KNOWN_HOSTS, Target

VARIABLE = "TIPCFLOW_CONNECTIONS_FILE"
_TRUE = frozenset({"true", "1", "t", "y", "yes"})
_KEYS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)


def connection_target(node: Node) -> Target | None:
    """Return where and how to log in to a node that has only the ID of an Airflow connection.

    The connection is `AIRFLOW_CONN_<ID>`, in one of Airflow's forms (JSON or a URI), or in the file that
    TIPCFLOW_CONNECTIONS_FILE names.

    Returns: None if the node has `ssh`, no `connection`, or one that is in neither place.

    Raises:
        InfraError: the file is unreadable, or the connection is invalid or does not verify host keys.
    """
    if not node.connection or node.ssh != SshTarget():
        return None
    connection = _from_variable(node) or _from_file(node)
    return _target(node, connection) if connection else None


def connection_route(
    node: Node, connection: str, *, where: str, host: str, credentials: str = "", timeout_s: float
) -> Route:
    """Return how a login by an Airflow connection reaches a node.

    Args:
        connection: the connection's id.
        where, host, credentials, timeout_s: as in `Route`.
    """
    return Route(
        node=node.name,
        where=where,
        host=host,
        timeout_s=timeout_s,
        known_in=f"Airflow connection {connection} or known_hosts",
        credentials=credentials,
        fix_address=f"see host of the Airflow connection {connection}",
        fix_login=f"see login and key of the Airflow connection {connection}, and that user's authorized_keys",
        fix_unknown_key=f"check the key on the node, then set it as `host_key` of connection {connection}",
        fix_changed_key=f"find out why; if the node was reinstalled, put its new key into connection {connection}",
    )


def _from_variable(node: Node) -> dict[str, Any]:
    name = f"AIRFLOW_CONN_{node.connection.upper()}"
    text = os.environ.get(name, "").strip()
    if not text:
        return {}
    if text.startswith("{"):
        try:
            return _mapping(json.loads(text), node, name)
        except ValueError:
            raise _invalid(node, f"the variable {name} is not valid JSON") from None
    return _of_uri(node, text, name)


def _of_uri(node: Node, text: str, name: str) -> dict[str, Any]:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _invalid(node, f"the variable {name} is not a URI") from None
    extra = dict(parse_qsl(parts.query, keep_blank_values=True))
    # Airflow stores an extra that is not flat as JSON in this parameter.
    whole = extra.pop("__extra__", "")
    return {
        "conn_type": parts.scheme,
        "host": unquote(parts.hostname or ""),
        "port": port,
        "login": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "extra": whole or extra,
    }


def _from_file(node: Node) -> dict[str, Any]:
    path = settings().connections_file
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _invalid(node, f"cannot read {path}: {error.strerror}", f"see {VARIABLE}") from error
    except ValueError:
        raise _invalid(node, f"{path} is not a JSON file", _EXPORT) from None
    connections = _mapping(content, node, str(path))
    entry = connections.get(node.connection)
    if isinstance(entry, str):
        return _of_uri(node, entry, f"connection {node.connection} in {path}")
    return _mapping(entry, node, str(path)) if entry is not None else {}


_EXPORT = "write it with `airflow connections export FILE --file-format json`"


def _mapping(content: object, node: Node, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise _invalid(node, f"{where} has no JSON object for connection {node.connection}", _EXPORT)
    return content


def _target(node: Node, connection: Mapping[str, Any]) -> Target:
    if (kind := str(connection.get("conn_type") or "ssh")) != "ssh":
        raise _invalid(node, f"Airflow connection {node.connection} has the type {kind}, expected ssh")
    extra = connection.get("extra") or {}
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except ValueError:
            raise _invalid(node, f"extra of Airflow connection {node.connection} is not valid JSON") from None
    extra = _mapping(extra, node, "extra")
    if any(_is_true(extra.get(key)) for key in ("no_host_key_check", "allow_host_key_change")):
        raise _invalid(
            node,
            f"Airflow connection {node.connection} disables host key verification",
            "remove no_host_key_check and allow_host_key_change, and set `host_key`",
        )
    host = str(connection.get("host") or node.address)
    try:
        port = int(connection.get("port") or 22)
    except (TypeError, ValueError):
        raise _invalid(node, f"Airflow connection {node.connection} has an invalid port") from None
    key_file = str(extra.get("key_file") or "")
    name = host if port == 22 else f"[{host}]:{port}"
    return Target(
        host=host,
        port=port,
        user=str(connection.get("login") or getpass.getuser()),
        identity_files=(str(Path(key_file).expanduser()),) if key_file else (),
        agent=not _is_false(extra.get("look_for_keys")),
        known_hosts=tuple(str(Path(file).expanduser()) for file in DEFAULT_KNOWN_HOSTS),
        key_name=name,
        proxy="",
        connection=node.connection,
        host_key=_host_key(node, str(extra.get("host_key") or "")),
        password=str(connection.get("password") or ""),
        private_key=_private_key(node, str(extra.get("private_key") or ""), extra.get("private_key_passphrase")),
    )


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in _TRUE


def _is_false(value: object) -> bool:
    return value is not None and not _is_true(value)


def _host_key(node: Node, text: str) -> paramiko.PKey | None:
    """Return the host key `[TYPE] BASE64 [COMMENT]`; the type is also part of the data."""
    if not text.strip():
        return None
    words = text.split()
    data = words[1] if len(words) > 1 and words[0].startswith(("ssh-", "ecdsa-")) else words[0]
    try:
        blob = base64.b64decode(data, validate=True)
        return paramiko.PKey.from_type_string(paramiko.Message(blob).get_text(), blob)
    except (binascii.Error, paramiko.SSHException, ValueError, IndexError) as error:
        raise _invalid(
            node,
            f"host_key of Airflow connection {node.connection} is not a public key",
            "use TYPE and BASE64 of the line in /etc/ssh/ssh_host_ed25519_key.pub of the node",
        ) from error


def _private_key(node: Node, text: str, passphrase: object) -> paramiko.PKey | None:
    if not text:
        return None
    for kind in _KEYS:
        try:
            return kind.from_private_key(io.StringIO(text), password=str(passphrase) if passphrase else None)
        except (paramiko.SSHException, ValueError):
            continue
    raise _invalid(
        node,
        f"private_key of Airflow connection {node.connection} cannot be read",
        "expected an Ed25519, ECDSA or RSA key, and its private_key_passphrase if it has one",
    )


def _invalid(
    node: Node, message: str, hint: str = "see the connection in Airflow, Admin > Connections"
) -> InfraError:
    return InfraError.of_node(node.name, message, hint=hint)
