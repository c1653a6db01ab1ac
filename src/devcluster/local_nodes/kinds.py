"""Choice between the two kinds of local nodes on this machine."""

from typing import Literal

from devcluster.local_nodes import namespaces

Kind = Literal["namespaces", "loopback"]


def sentence(kind: Kind, reason: str = "") -> str:
    """Return one sentence about nodes of a kind.

    Args:
        reason: why the nodes are not in namespaces, '' if unknown.
    """
    if kind == "namespaces":
        return "network namespaces, each with its own sshd"
    why = f" ({reason})" if reason else ""
    return f"loopback addresses, each with an unprivileged sshd{why}"


def choose(mode: Kind | None = None) -> tuple[Kind, str]:
    """Return the kind of nodes for this machine, and why it is not namespaces ('' for namespaces).

    Args:
        mode: the requested kind; None for namespaces if available, otherwise loopback.
    """
    if mode is not None:
        return mode, "as requested" if mode == "loopback" else ""
    reason = namespaces.unavailable()
    return ("loopback", reason) if reason else ("namespaces", "")
