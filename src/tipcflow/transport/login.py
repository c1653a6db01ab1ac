"""SSH login to a node: host keys are always checked, and every failure has a specific message."""

import base64
import hashlib
import logging
import random
import socket
import time
from pathlib import Path
from typing import Any

import paramiko

from tipcflow.domain import InfraError, Node
from tipcflow.transport.target import Target, resolve

LOG = "tipcflow.transport.ssh"
KEEPALIVE_S = 10
UNACKNOWLEDGED_MS = 30_000
"""How long sent data may stay unacknowledged before the connection counts as lost."""


class _UnknownHostKey(paramiko.SSHException):
    def __init__(self, key: paramiko.PKey) -> None:
        super().__init__("unknown host key")
        self.key = key


class _Reject(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        raise _UnknownHostKey(key)


class _DroppedError(Exception):
    """The server closed the connection before its banner."""


def connect_client(
    node: Node, *, timeout: float = 10.0, patience: float = 30.0, config_file: Path | None = None
) -> paramiko.SSHClient:
    """Return a connected, authenticated client.

    Args:
        timeout: limit for the TCP connection, the banner and the login, each in seconds.
        patience: seconds to retry while the server drops connections before its banner (`MaxStartups`).
        config_file: replaces the user's `~/.ssh/config`.

    Raises:
        InfraError: names the node, the problem and the fix.
    """
    target = resolve(node, config_file=config_file)
    until, pause = time.monotonic() + patience, 0.1
    while True:
        try:
            return _connect_once(node, target, timeout)
        except _DroppedError as error:
            pause = min(2.0, pause * 2) * random.uniform(0.7, 1.3)
            if time.monotonic() + pause > until:
                raise _error(
                    node,
                    f"{target} closes the connection before its banner ({error})",
                    "too many concurrent logins (sshd's MaxStartups), or not an SSH server",
                    passing=True,
                ) from error
            time.sleep(pause)


def _connect_once(node: Node, target: Target, timeout: float) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    logging.getLogger(LOG).setLevel(logging.CRITICAL)
    client.set_log_channel(LOG)
    client.set_missing_host_key_policy(_Reject())
    _load_known_hosts(client, node, target)
    sock = _open(node, target, timeout)
    keys: Any = list(target.identity_files) or None  # paramiko accepts a list, its stubs do not
    try:
        client.connect(
            target.key_name,  # with an open socket it only selects the host key
            port=22,
            username=target.user,
            key_filename=keys,
            look_for_keys=target.agent and not target.identity_files,
            allow_agent=target.agent,
            sock=sock,
            timeout=2 * timeout,  # for the key exchange, which starts with the banner
            banner_timeout=timeout,
            auth_timeout=timeout,
            channel_timeout=timeout,
        )
    except BaseException as error:
        client.close()
        sock.close()
        raise _explain(node, target, error) from error
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE_S)
    return client


def _open(node: Node, target: Target, timeout: float) -> Any:
    if target.proxy:
        return paramiko.ProxyCommand(target.proxy)
    try:
        sock = socket.create_connection((target.host, target.port), timeout=timeout)
    except socket.gaierror as error:
        raise _error(node, f"the host name {target.host} is unknown", "see ssh.host of the node") from error
    except TimeoutError as error:
        raise _error(
            node, f"{target} does not respond within {timeout:g} s", "check power and firewall", passing=True
        ) from error
    except ConnectionRefusedError as error:
        raise _error(
            node, f"{target} refuses connections: no SSH server is running there", "start sshd", passing=True
        ) from error
    except OSError as error:
        raise _error(
            node, f"{target} is unreachable: {error.strerror or error}", "see the network", passing=True
        ) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    return sock


def _load_known_hosts(client: paramiko.SSHClient, node: Node, target: Target) -> None:
    for file in target.known_hosts:
        try:
            client.load_system_host_keys(file)
        except FileNotFoundError:
            continue
        except Exception as error:
            raise _error(node, f"cannot read {file}: {error}", "fix that file") from error


def _explain(node: Node, target: Target, error: BaseException) -> BaseException:
    """Return the error to show; errors unrelated to SSH (an interrupt) are returned unchanged."""
    name, file = target.key_name, target.known_hosts[0]
    if isinstance(error, _UnknownHostKey):
        return _error(
            node,
            f"the host key of {target} ({error.key.get_name()} {_fingerprint(error.key)}) is not in "
            + " or ".join(target.known_hosts),
            f"check that fingerprint on the node, then: ssh-keyscan -p {target.port} {target.host} >> {file}",
        )
    if isinstance(error, paramiko.BadHostKeyException):
        return _error(
            node,
            f"the host key of {target} has changed: {_fingerprint(error.key)} instead of the known "
            f"{_fingerprint(error.expected_key)} in " + " or ".join(target.known_hosts),
            f"find out why; if the node was reinstalled: ssh-keygen -f {file} -R '{name}', then ssh-keyscan",
        )
    keys = ", ".join(target.identity_files) or "the agent's and the default keys"
    if isinstance(error, paramiko.PasswordRequiredException):
        return _error(node, f"{keys} is encrypted", "load it into ssh-agent")
    if isinstance(error, paramiko.AuthenticationException):
        return _error(
            node,
            f"{target} refuses the login with {keys} ({error})",
            "add the public key to that user's authorized_keys; accounts made by useradd are locked",
        )
    dropped = isinstance(error, EOFError | ConnectionError) or "banner" in str(error).lower()
    if isinstance(error, paramiko.ProxyCommandFailure) or (dropped and target.proxy):
        return _error(
            node, f"no SSH server responds through: {target.proxy}", "see ProxyCommand or ProxyJump", passing=True
        )
    if dropped and not isinstance(error.__context__, TimeoutError):
        return _DroppedError(str(error) or type(error).__name__)
    if dropped:
        return _error(
            node,
            f"{target} accepts connections but sends no banner",
            "not an SSH server, or overloaded",
            passing=True,
        )
    if isinstance(error, TimeoutError) or "No existing session" in str(error):
        return _error(node, f"{target} did not finish the login in time", "check the load", passing=True)
    if isinstance(error, paramiko.SSHException | OSError | ValueError):
        return _error(node, f"cannot log in to {target}: {error}", "")
    return error


def _fingerprint(key: paramiko.PKey) -> str:
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _error(node: Node, message: str, hint: str, *, passing: bool = False) -> InfraError:
    return InfraError(f"node {node.name}: {message}", node=node.name, hint=hint, passing=passing)
