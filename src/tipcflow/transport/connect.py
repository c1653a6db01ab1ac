"""Connecting to a node, by whichever adapter there is."""

from tipcflow.domain import Node
from tipcflow.transport.base import Transport


def connect(node: Node, *, timeout: float = 10.0) -> Transport:
    """Connect to a node.

    Args:
        timeout: seconds for the TCP connection, the banner and the login, each.

    Raises:
        InfraError: unreachable, refused, an unknown or changed host key, a refused login: each with its message.
    """
    from tipcflow.transport import paramiko_adapter  # takes a tenth of a second to import

    return paramiko_adapter.connect(node, timeout=timeout)
