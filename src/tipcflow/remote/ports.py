"""Which TCP ports a node uses."""

import re

# Lines of /proc/net/tcp and tcp6: number, local address:port in hexadecimal, peer.
_LINE = re.compile(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ", re.M)


def list_ports() -> str:
    """Print the kernel's tables of TCP sockets, listening and connected ones; a node without IPv6 has one."""
    return "/bin/sh -c 'cat /proc/net/tcp; cat /proc/net/tcp6 2>/dev/null || :'"


def ports_in(tables: str) -> set[int]:
    """The local ports of those tables."""
    return {int(port, 16) for port in _LINE.findall(tables)}
