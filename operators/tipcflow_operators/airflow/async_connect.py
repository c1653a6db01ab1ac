"""Connects triggers to nodes: by Airflow connections and the SSH provider's asynchronous hook, or by `exec`."""

import asyncio
import getpass
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tipcflow.domain import Node
from tipcflow.transport.async_base import AsyncTransport
from tipcflow.transport.async_local import AsyncLocalTransport
from tipcflow.transport.asyncssh_adapter import AsyncSshTransport
from tipcflow.transport.connections import connection_route
from tipcflow.transport.ssh_errors import DroppedError, dropped, explain

if TYPE_CHECKING:
    import asyncssh
    from airflow.providers.ssh.hooks.ssh import SSHHookAsync

TIMEOUT_S = 30
# Logs every packet of a connection at level INFO, which would fill the task's log.
logging.getLogger("asyncssh").setLevel(logging.WARNING)


@asynccontextmanager
async def connect_async(node: Node) -> AsyncIterator[AsyncTransport]:
    """Connect to a node for the duration of the context; once, without retries.

    Raises:
        InfraError: the login failed; the same messages as `tipcflow_operators.airflow.connect`.
    """
    if node.exec is not None or (node.slurm is not None and node.slurm.local):
        yield AsyncLocalTransport(node)
        return
    async with await _ssh(node) as connection:
        yield AsyncSshTransport(node, connection)


async def _ssh(node: Node) -> "asyncssh.SSHClientConnection":
    """Connect to a node by its Airflow connection.

    Raises:
        InfraError: the login failed; the same messages as `tipcflow_operators.airflow.connect`.
    """
    hook = await asyncio.to_thread(_hook_class)
    try:
        return await asyncio.wait_for(_open(hook, node.connection), TIMEOUT_S)
    except Exception as error:
        route = connection_route(node, node.connection, where=node.address, host=node.address, timeout_s=TIMEOUT_S)
        explained = explain(error, route)
        raise dropped(explained, route) if isinstance(explained, DroppedError) else explained from error


async def _open(hook: type["SSHHookAsync"], connection: str) -> "asyncssh.SSHClientConnection":
    from airflow.sdk import BaseHook

    known = await BaseHook.aget_connection(connection)
    # As the hook of tasks does: asyncssh fails without a login, and logs in as the user '' with an empty one.
    opened: asyncssh.SSHClientConnection = await hook(
        ssh_conn_id=connection, username=known.login or getpass.getuser()
    ).get_conn()
    return opened


def _hook_class() -> type["SSHHookAsync"]:
    """Import the hook; blocks for seconds, so call it outside of the event loop that all triggers share."""
    import asyncssh  # noqa: F401  # the hook imports it when it connects
    from airflow.providers.ssh.hooks.ssh import SSHHookAsync

    return SSHHookAsync
