"""Connects to nodes through Airflow connections and the SSH provider's hook; host keys are always verified."""

import logging
import random
import time
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError, Node
from tipcflow.transport import Transport

if TYPE_CHECKING:
    from airflow.providers.ssh.hooks.ssh import SSHHook

TIMEOUT_S = 10
# How long to retry the login while sshd drops connections before its banner (MaxStartups).
PATIENCE_S = 30.0
KEEPALIVE_S = 10
# Paramiko logs every connection and login at level INFO, which would fill the task's log.
logging.getLogger("paramiko").setLevel(logging.WARNING)


def connect(node: Node, hook: "SSHHook | None" = None) -> Transport:
    """Connect to a node by its Airflow connection.

    Args:
        node: its `connection` is the id of the connection.
        hook: used instead of a new hook for the node's connection.

    Raises:
        InfraError: the connection does not exist or disables host key verification, or the login fails. The
            message names the node and the connection.
    """
    from tipcflow.transport.paramiko_adapter import ParamikoTransport

    hook = hook_of(node.connection, node.name) if hook is None else checked(hook, node.name)
    until, pause = time.monotonic() + PATIENCE_S, 0.2
    while True:
        try:
            return ParamikoTransport(hook.get_conn(), node)
        except Exception as error:
            if not _dropped(error) or time.monotonic() + pause > until:
                raise _explained(node, hook, error) from error
        pause = min(2.0, pause * 2) * random.uniform(0.7, 1.3)
        time.sleep(pause)


def hook_of(connection: str, node: str) -> "SSHHook":
    """The SSH provider's hook for a node's connection; it does not connect yet.

    Args:
        connection: the connection's id.
        node: the node's name, for error messages.

    Raises:
        InfraError: the connection does not exist or disables host key verification.
    """
    from airflow.providers.ssh.hooks.ssh import SSHHook
    from airflow.sdk.exceptions import AirflowException

    if not connection:
        raise InfraError(
            f"node {node} has no Airflow connection",
            node=node,
            hint="set `connection` of the node in the cluster file to the id of an SSH connection",
        )
    try:
        hook = SSHHook(
            ssh_conn_id=connection,
            conn_timeout=TIMEOUT_S,
            banner_timeout=TIMEOUT_S,
            auth_timeout=TIMEOUT_S,
            keepalive_interval=KEEPALIVE_S,
            conn_retry_attempts=1,
        )
    except (AirflowException, ValueError, OSError) as error:
        raise InfraError(
            f"node {node}: Airflow connection {connection} is not usable: {error}",
            node=node,
            hint="see Admin > Connections, or the variable AIRFLOW_CONN_" + connection.upper(),
        ) from error
    return checked(hook, node)


def checked(hook: "SSHHook", node: str) -> "SSHHook":
    """Return the hook after checking that it verifies host keys.

    Raises:
        InfraError: the hook or its connection disables host key verification.
    """
    if hook.no_host_key_check or hook.allow_host_key_change:
        raise InfraError(
            f"node {node}: Airflow connection {hook.ssh_conn_id} disables host key verification",
            node=node,
            hint="remove no_host_key_check and allow_host_key_change, and set `host_key`",
        )
    return hook


def _dropped(error: BaseException) -> bool:
    """Whether the server closed the connection before it sent its SSH banner."""
    return isinstance(error, EOFError | ConnectionResetError) or "protocol banner" in str(error)


def _explained(node: Node, hook: "SSHHook", error: BaseException) -> InfraError:
    import paramiko

    where = f"{hook.username or 'the default user'}@{hook.remote_host}:{hook.port or 22}"
    hint = f"see the Airflow connection {node.connection}"
    passing = False
    if isinstance(error, paramiko.BadHostKeyException):
        what = f"the host key of {where} has changed"
        hint = f"find out why; if the node was reinstalled, put its new key into {node.connection}"
    elif isinstance(error, paramiko.AuthenticationException):
        what = f"{where} rejected the login"
    elif "not found in known_hosts" in str(error):
        what = f"the host key of {where} is unknown"
        hint = f"verify the key on the node, then set it as `host_key` of connection {node.connection}"
    elif isinstance(error, TimeoutError):
        what = f"{where} did not respond within {TIMEOUT_S} s"
        passing = True
    else:
        what = f"cannot connect to {where}: {error or type(error).__name__}"
        passing = True
    return InfraError(f"node {node.name}: {what}", node=node.name, hint=hint, passing=passing)
