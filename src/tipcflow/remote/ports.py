"""TCP ports in use on a node."""

import re

# Lines of /proc/net/tcp and tcp6: number, local address:port in hexadecimal, peer.
_LINE = re.compile(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ", re.M)


def list_ports() -> str:
    """Print the kernel's tables of listening and connected TCP sockets; a node without IPv6 has one table."""
    return "/bin/sh -c 'cat /proc/net/tcp; cat /proc/net/tcp6 2>/dev/null || :'"


def ports_in(tables: str) -> set[int]:
    """Return the local ports in these tables."""
    return {int(port, 16) for port in _LINE.findall(tables)}
