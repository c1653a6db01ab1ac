"""SSH login to a node: host keys are always checked, and every failure has a specific message."""

import logging
import socket
from pathlib import Path
from typing import Any, NamedTuple

import paramiko

from tipcflow.domain import Node
from tipcflow.transport.connections import connection_route, connection_target
from tipcflow.transport.ssh_errors import Route, UnknownHostKeyError, explain, patient_login
from tipcflow.transport.target import Target, resolve

LOG = "tipcflow.transport.ssh"
KEEPALIVE_S = 10
UNACKNOWLEDGED_MS = 30_000
"""How long sent data may stay unacknowledged before the connection counts as lost."""


class _Reject(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        raise UnknownHostKeyError(key)


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
    target = connection_target(node) or resolve(node, config_file=config_file)
    route = _route(node, target, timeout)
    return patient_login(lambda: _connect_once(target, route), route, patience_s=patience)


def _connect_once(target: Target, route: Route) -> paramiko.SSHClient:
    timeout = route.timeout_s
    client = paramiko.SSHClient()
    logging.getLogger(LOG).setLevel(logging.CRITICAL)
    client.set_log_channel(LOG)
    client.set_missing_host_key_policy(_Reject())
    _load_known_hosts(client, target, route)
    sock = _open(target, timeout)
    searches = target.agent and not (target.identity_files or target.private_key)
    keys: Any = list(target.identity_files) or None  # paramiko accepts a list, its stubs do not
    try:
        client.connect(
            target.key_name,  # with an open socket it only selects the host key
            port=22,
            username=target.user,
            password=target.password or None,
            pkey=target.private_key,
            key_filename=keys,
            look_for_keys=searches,
            allow_agent=target.agent and not target.private_key,
            sock=sock,
            timeout=2 * timeout,  # for the key exchange, which starts with the banner
            banner_timeout=timeout,
            auth_timeout=timeout,
            channel_timeout=timeout,
        )
    except BaseException as error:
        client.close()
        sock.close()
        raise explain(error, route, connected=True) from error
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE_S)
    return client


def _open(target: Target, timeout: float) -> Any:
    if target.proxy:
        return paramiko.ProxyCommand(target.proxy)
    sock = socket.create_connection((target.host, target.port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    return sock


def _load_known_hosts(client: paramiko.SSHClient, target: Target, route: Route) -> None:
    if target.host_key is not None:
        client.get_host_keys().add(target.key_name, target.host_key.get_name(), target.host_key)
        return
    for file in target.known_hosts:
        try:
            client.load_system_host_keys(file)
        except FileNotFoundError:
            continue
        except Exception as error:
            raise route.error(f"cannot read {file}: {error}", "fix that file") from error


def _route(node: Node, target: Target, timeout: float) -> Route:
    if target.connection:
        credentials = ", ".join(target.identity_files)
        where, host = str(target), target.host
        return connection_route(
            node, target.connection, where=where, host=host, credentials=credentials, timeout_s=timeout
        )
    name, file = target.key_name, target.known_hosts[0]
    return Route(
        node=node.name,
        where=str(target),
        host=target.host,
        timeout_s=timeout,
        known_in=" or ".join(target.known_hosts),
        credentials=", ".join(target.identity_files) or "the agent's and the default keys",
        proxy=target.proxy,
        fix_address="see ssh.host of the node",
        fix_login="add the public key to that user's authorized_keys; accounts made by useradd are locked",
        fix_unknown_key="check that fingerprint on the node, then: "
        f"ssh-keyscan -p {target.port} {target.host} >> {file}",
        fix_changed_key=f"find out why; if the node was reinstalled: ssh-keygen -f {file} -R '{name}', then "
        "ssh-keyscan",
    )


class HostKey(NamedTuple):
    """A server's host key.

    Attributes:
        name: name of the key in a known_hosts file, `host` or `[host]:port`.
        kind: its algorithm, `ssh-ed25519`.
        data: the public key in base64.
        fingerprint: `SHA256:…`, as printed by `ssh-keygen -l`.
    """

    name: str
    kind: str
    data: str
    fingerprint: str

    @property
    def line(self) -> str:
        """Return the line of a known_hosts file."""
        return f"{self.name} {self.kind} {self.data}\n"


def read_host_key(node: Node, *, timeout: float = 10.0) -> HostKey:
    """Return the key that a server presents, without a login and without any trust in it.

    Args:
        timeout: limit for the TCP connection and for the key exchange, each in seconds.

    Raises:
        InfraError: unreachable, or not an SSH server.
    """
    target = resolve(node)
    route = _route(node, target, timeout)
    logging.getLogger(LOG).setLevel(logging.CRITICAL)
    try:
        sock = _open(target, timeout)
    except BaseException as error:
        raise explain(error, route) from error
    transport = paramiko.Transport(sock)
    transport.set_log_channel(LOG)
    transport.banner_timeout = timeout
    try:
        transport.start_client(timeout=timeout)
        key = transport.get_remote_server_key()
    except BaseException as error:
        raise explain(error, route, connected=True) from error
    finally:
        transport.close()
    return HostKey(target.key_name, key.get_name(), key.get_base64(), key.fingerprint)
