"""Slots of a host that several workspaces, users or controllers use: which runs hold which, as its runners say.

A runner binds an abstract Unix socket for each slot of its job (`remote/runner/slots.py`). Such a name exists once
per network namespace, whoever binds it, and goes with the process.
"""

import ipaddress
from collections.abc import Collection, Mapping
from typing import Any

from tipcflow.domain import Node
from tipcflow.remote.runner.slots import HOST, RUN_LENGTH

__all__ = ["host_key", "runs_holding", "short"]


def host_key(address: str) -> str:
    """What names the host itself: all of its addresses mean one host.

    Addresses of the loopback network other than 127.0.0.1 are nodes that share a machine on purpose, as in the
    demo without root: each is a host of its own.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return HOST
    return address if ip.is_loopback and address not in ("127.0.0.1", "::1") else HOST


def short(run: str) -> str:
    """A run's id as the sockets name it: a name holds no more."""
    return run[:RUN_LENGTH]


def runs_holding(listed: Mapping[str, Any], node: Node, slots: Collection[int] | None = None) -> set[str]:
    """Short ids of the runs, of any workspace and user, that hold slots of a node's host.

    Args:
        listed: what the node's runner lists.
        slots: of these slots only; None for all.
    """
    key = host_key(node.address)
    return {
        str(one["run"])
        for one in listed.get("host", ())
        if one["host"] == key and (slots is None or one["slot"] in slots)
    }
