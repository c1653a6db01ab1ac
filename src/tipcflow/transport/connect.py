"""Connect to a node with its adapter."""

from tipcflow.domain import Node
from tipcflow.transport.base import Transport


def connect(node: Node, *, timeout: float = 10.0) -> Transport:
    """Connect to a node.

    Args:
        timeout: limit for the TCP connection, the banner and the login, each in seconds.

    Raises:
        InfraError: unreachable, connection refused, unknown or changed host key, login refused, Slurm
            allocation lost, container or pod not running: one message each.
    """
    if node.exec is not None:
        from tipcflow.transport import exec_adapter

        return exec_adapter.connect(node, timeout=timeout)
    if node.slurm is not None and node.slurm.local:
        from tipcflow.transport import local_adapter

        return local_adapter.connect(node)
    from tipcflow.transport import paramiko_adapter  # the import takes 0.1 s

    return paramiko_adapter.connect(node, timeout=timeout)
