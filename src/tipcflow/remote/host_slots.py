"""Slots of a host that several workspaces, users or controllers share: their holders as reported by runners.

A runner binds an abstract Unix socket for each slot of its job (`remote/runner/slots.py`). Such a name exists once
per network namespace for all users, and disappears with the process.
"""

import ipaddress
from collections.abc import Collection, Mapping
from typing import Any

from tipcflow.domain import Node
from tipcflow.remote.runner.slots import HOST, RUN_LENGTH

__all__ = ["host_key", "runs_holding", "short"]


def host_key(address: str) -> str:
    """Return the identity of a host: all of its addresses map to one host.

    Addresses of the loopback network other than 127.0.0.1 are nodes that share a machine on purpose, as in the
    demo without root: each is a host of its own.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return HOST
    return address if ip.is_loopback and address not in ("127.0.0.1", "::1") else HOST


def short(run: str) -> str:
    """Return a run's id as used in socket names, whose length is limited."""
    return run[:RUN_LENGTH]


def runs_holding(listed: Mapping[str, Any], node: Node, slots: Collection[int] | None = None) -> set[str]:
    """Return short ids of the runs, of any workspace and user, that hold slots of a node's host.

    Args:
        listed: what the node's runner lists.
        slots: only these slots; None: all.
    """
    key = host_key(node.address)
    return {
        str(holder["run"])
        for holder in listed.get("host", ())
        if holder["host"] == key and (slots is None or holder["slot"] in slots)
    }
