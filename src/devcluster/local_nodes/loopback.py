"""Local nodes without root: one loopback address and one unprivileged sshd per node; all else is shared.

Addresses and ports differ between sets of nodes, so that two demos do not interfere. A node's first process
adopts orphans of its sshd, and can therefore end all processes of the node.
"""

import contextlib
import os
import signal
import socket

from devcluster.local_nodes import processes, sshd
from devcluster.local_nodes.backend import Backend, LocalNode
from devcluster.local_nodes.processes import Member, wait_until
from tipcflow.domain import InfraError


class Loopback(Backend):
    """Nodes on loopback addresses."""

    kind = "loopback"

    def plan(self, names: tuple[str, ...]) -> None:
        """Choose addresses 127.64-127.x.n from the instance's random id.

        Raises:
            InfraError: sshd would refuse every login of root.
        """
        if os.geteuid() == 0 and sshd.is_root_locked():
            raise InfraError(
                "the account of root is locked, so sshd accepts no key for it",
                hint="unlock it without a password (usermod -p '*' root), or start the nodes as another user",
            )
        high, low = int(self.state.id[:2], 16), int(self.state.id[2:4], 16)
        for index, name in enumerate(names):
            address = f"127.{64 + high % 64}.{low}.{index + 1}"
            self.nodes[name] = LocalNode(name, address, 0, self.folder / name)
        self.state.save()

    def open(self) -> None:
        """Choose the ports, because known_hosts needs them; no shared resource is needed."""
        for node in self.nodes.values():
            node.port = _free_port(node.address)

    def start(self, node: LocalNode) -> None:
        """Start init as the subreaper of the node's processes, and wait for sshd."""
        self.spawn(node, [], self.config(node, isolated=False))
        assert node.outer is not None
        node.init = node.outer.pid
        sshd.wait_for_sshd(node.name, node.address, node.port, node.folder)

    def members(self, node: LocalNode) -> list[Member]:
        """Return the node's processes except init."""
        return processes.below(node.init, self.marker(node))

    def inside(self, node: LocalNode) -> list[str]:
        """Return the prefix that sets the node's marker in the environment; no namespace to enter."""
        return ["env", self.marker(node)]

    def set_link(self, node: LocalNode, *, up: bool) -> None:
        """Not supported: a loopback address has no network link.

        Raises:
            InfraError: always.
        """
        raise InfraError(
            f"node {node.name} is a loopback address: its link cannot be set {'up' if up else 'down'}"
        )

    def stop(self, node: LocalNode) -> None:
        """End the node with all its processes."""
        super().stop(node)
        self._kill_marked(self.marker(node))

    def remove(self) -> None:
        """Kill the state's processes and all processes with the instance's marker."""
        self.kill_recorded()
        self._kill_marked(self.state.marker)

    def _kill_marked(self, marker: str) -> None:
        def have_ended() -> bool:
            left = processes.marked(marker)
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return not left

        wait_until(have_ended, "processes of local nodes did not end", deadline_s=10.0)


def _free_port(address: str) -> int:
    try:
        with socket.socket() as probe:
            probe.bind((address, 0))
            port: int = probe.getsockname()[1]
            return port
    except OSError as error:
        raise InfraError(f"no free port at {address}: {error}") from error
