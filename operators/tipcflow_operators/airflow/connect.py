"""Connects to nodes through Airflow connections and the SSH provider's hook; host keys are always verified."""

import logging
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError, Node
from tipcflow.transport import Transport
from tipcflow.transport.connect import connect as connect_directly
from tipcflow.transport.connections import connection_route
from tipcflow.transport.ssh_errors import patient_login

if TYPE_CHECKING:
    from airflow.providers.ssh.hooks.ssh import SSHHook

TIMEOUT_S = 10
# How long to retry the login while sshd drops connections before its banner (MaxStartups).
PATIENCE_S = 30.0
KEEPALIVE_S = 10
# Paramiko logs every connection and login at level INFO, which would fill the task's log.
logging.getLogger("paramiko").setLevel(logging.WARNING)


def connect(node: Node, hook: "SSHHook | None" = None) -> Transport:
    """Connect to a node by its Airflow connection; to a container or pod by the `exec` of its engine.

    Args:
        node: its `connection` is the id of the connection.
        hook: used instead of a new hook for the node's connection.

    Raises:
        InfraError: the connection does not exist or disables host key verification, or the login fails. The
            message names the node and the connection.
    """
    if node.exec is not None:
        return connect_directly(node, timeout=TIMEOUT_S)
    from tipcflow.transport.paramiko_adapter import ParamikoTransport

    hook = hook_of(node.connection, node.name) if hook is None else checked(hook, node.name)
    route = connection_route(
        node,
        hook.ssh_conn_id or node.connection,
        where=f"{hook.username or 'the default user'}@{hook.remote_host}:{hook.port or 22}",
        host=hook.remote_host,
        credentials=hook.key_file or "",
        timeout_s=TIMEOUT_S,
    )
    transport = patient_login(lambda: ParamikoTransport(hook.get_conn(), node), route, patience_s=PATIENCE_S)
    try:
        transport.check_allocation()
    except BaseException:
        transport.close()
        raise
    return transport


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
            # Shorter than the key exchange's timeout (`conn_timeout`), so that the error names what is missing.
            banner_timeout=0.8 * TIMEOUT_S,
            auth_timeout=TIMEOUT_S,
            keepalive_interval=KEEPALIVE_S,
            conn_retry_attempts=1,
        )
    except (AirflowException, ValueError, OSError) as error:
        raise InfraError.of_node(
            node,
            f"Airflow connection {connection} is not usable: {error}",
            hint="see Admin > Connections, or the variable AIRFLOW_CONN_" + connection.upper(),
        ) from error
    return checked(hook, node)


def checked(hook: "SSHHook", node: str) -> "SSHHook":
    """Return the hook after checking that it verifies host keys.

    Raises:
        InfraError: the hook or its connection disables host key verification.
    """
    if hook.no_host_key_check or hook.allow_host_key_change or _trusts_any_key(hook):
        raise InfraError.of_node(
            node,
            f"Airflow connection {hook.ssh_conn_id} disables host key verification",
            hint="remove no_host_key_check, allow_host_key_change and `known_hosts: none`, and set `host_key`",
        )
    return hook


def _trusts_any_key(hook: "SSHHook") -> bool:
    """Whether the connection has `known_hosts: none`, which only the asynchronous hook of triggers obeys."""
    if not hook.ssh_conn_id:
        return False
    known_hosts = hook.get_connection(hook.ssh_conn_id).extra_dejson.get("known_hosts")
    return str(known_hosts).strip().lower() == "none" and known_hosts is not None
