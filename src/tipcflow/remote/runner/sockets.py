"""TCP sockets of processes, which show the peers that they wait for."""

from __future__ import annotations

import os
import re
import socket
import struct
from typing import Iterable

from .files import Json
from .processes import Proc

STATES = (
    "", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT",
    "LAST_ACK", "LISTEN", "CLOSING",
)  # fmt: skip
MOST = 200


def address(text: str) -> str:
    """Convert `0100007F:1F90` to `127.0.0.1:8080`: words in the machine's byte order, the port as a plain
    hexadecimal number."""
    host, port = text.split(":")
    packed = b"".join(struct.pack("=I", int(host[at : at + 8], 16)) for at in range(0, len(host), 8))
    if len(packed) == 4:
        return f"{socket.inet_ntoa(packed)}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]:{int(port, 16)}"


def table(pid: int, *, closed: bool = False) -> dict[str, Json]:
    """Return inode -> socket, for the network namespace of the process.

    Args:
        closed: return instead those of ended connections, which have no inode and are numbered.
    """
    found: dict[str, Json] = {}
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{name}") as handle:
                rows = handle.read().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            cells = row.split()
            sent, _, received = cells[4].partition(":")
            state = int(cells[3], 16)
            if closed != (cells[9] == "0"):
                continue
            found[str(len(found)) if closed else cells[9]] = {
                "local": address(cells[1]),
                "peer": address(cells[2]),
                "state": STATES[state] if state < len(STATES) else cells[3],
                "tx_queue": int(sent, 16),
                "rx_queue": int(received, 16),
            }
    return found


def sockets(procs: Iterable[Proc], rank: dict[int, str]) -> list[Json]:
    """Return TCP sockets of these processes, with pid and rank; sockets with queued data first, listening
    sockets last."""
    networks: dict[str, dict[str, Json]] = {}
    found = []
    for proc in procs:
        try:
            network = os.readlink(f"/proc/{proc.pid}/ns/net")
            fds = os.listdir(f"/proc/{proc.pid}/fd")
        except OSError:
            continue
        if network not in networks:
            networks[network] = table(proc.pid)
        for fd in fds:
            try:
                inode = re.match(r"socket:\[(\d+)\]$", os.readlink(f"/proc/{proc.pid}/fd/{fd}"))
            except OSError:
                continue
            known = networks[network].get(inode.group(1)) if inode else None
            if known:
                found.append(dict(known, pid=proc.pid, rank=rank.get(proc.pid, "")))
    found.sort(key=lambda one: (one["state"] == "LISTEN", not one["tx_queue"] and not one["rx_queue"]))
    return found[:MOST]
