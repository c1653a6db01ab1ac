"""Connects triggers to nodes through Airflow connections and the SSH provider's asynchronous hook."""

import asyncio
import logging
from typing import TYPE_CHECKING

from tipcflow.domain import Node
from tipcflow.transport.ssh_errors import DroppedError, dropped, explain
from tipcflow_operators.airflow.connect import connection_route

if TYPE_CHECKING:
    import asyncssh
    from airflow.providers.ssh.hooks.ssh import SSHHookAsync

TIMEOUT_S = 30
# Logs every packet of a connection at level INFO, which would fill the task's log.
logging.getLogger("asyncssh").setLevel(logging.WARNING)


async def connect_async(node: Node) -> "asyncssh.SSHClientConnection":
    """Connect to a node by its Airflow connection, once.

    Raises:
        InfraError: the login failed; the same messages as `tipcflow_operators.airflow.connect`.
    """
    hook = (await asyncio.to_thread(_hook_class))(ssh_conn_id=node.connection)
    try:
        return await asyncio.wait_for(hook.get_conn(), TIMEOUT_S)
    except Exception as error:
        route = connection_route(node, node.connection, where=node.address, host=node.address, timeout_s=TIMEOUT_S)
        explained = explain(error, route)
        raise dropped(explained, route) if isinstance(explained, DroppedError) else explained from error


def _hook_class() -> type["SSHHookAsync"]:
    """Import the hook; blocks for seconds, so call it outside of the event loop that all triggers share."""
    import asyncssh  # noqa: F401  # the hook imports it when it connects
    from airflow.providers.ssh.hooks.ssh import SSHHookAsync

    return SSHHookAsync
