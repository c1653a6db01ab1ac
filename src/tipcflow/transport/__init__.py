"""Connections to nodes: one protocol and its adapters. No other package uses SSH.

Public: `__all__`, `async_base`, `async_local`, `asyncssh_adapter`, `connect`, `connections`, `login`,
`paramiko_adapter`, `ssh_errors`.
"""

from tipcflow.transport.base import Completed, Transport

__all__ = ["Completed", "Transport"]
