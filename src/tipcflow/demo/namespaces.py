"""Local nodes as root: each has its own network, processes, mounts, host name and shared memory.

The namespaces have no names: they end with the node's first process, and with them go its mounts and its end of
the cable. All that a killed owner can leave behind is the bridge, and for a moment the cables: the state has both.
"""

import json
import os
import secrets
import uuid
from pathlib import Path

from tipcflow.demo import processes, sshd
from tipcflow.demo.backend import Backend, LocalNode
from tipcflow.demo.processes import Member
from tipcflow.demo.shell import call
from tipcflow.demo.subnet import free_subnet
from tipcflow.domain import InfraError

_UNSHARE = ["unshare", "--net", "--pid", "--ipc", "--uts", "--mount", "--propagation", "slave", "--fork"]


def unavailable() -> str:
    """Why this machine or user cannot have such nodes ('' when it can)."""
    if os.geteuid() != 0:
        return "not root"
    probe = call([*_UNSHARE, "--mount-proc", "ip", "link", "set", "lo", "up"], check=False)
    if probe.returncode:
        return f"no namespaces here: {probe.stderr.strip()}"
    name = f"tf{secrets.token_hex(4)}"
    made = call(["ip", "link", "add", name, "type", "bridge"], check=False)
    call(["ip", "link", "delete", name], check=False)
    return f"no bridges here: {made.stderr.strip()}" if made.returncode else ""


class Namespaces(Backend):
    """Nodes in namespaces, joined by a bridge that this machine has an address on."""

    kind = "namespaces"

    def plan(self, names: tuple[str, ...]) -> None:
        """Choose a free network; the bridge gets its first address."""
        self._subnet = free_subnet()
        addresses = iter(self._subnet.hosts())
        self._gateway = str(next(addresses))
        self.state.bridge = f"tf{self.state.id}"
        for index, name in enumerate(names):
            self.state.links[name] = f"tf{self.state.id}n{index}"
        self.state.save()
        for name, address in zip(names, addresses, strict=False):
            self.nodes[name] = LocalNode(name, str(address), 22, self.folder / name)

    def open(self) -> None:
        """Make the bridge."""
        bridge = self.state.bridge
        _ip(
            f"link add {bridge} type bridge stp_state 0 forward_delay 0",
            f"link set {bridge} addrgenmode none",
            f"addr add {self._gateway}/{self._subnet.prefixlen} dev {bridge}",
            f"link set {bridge} up",
        )

    def start(self, node: LocalNode) -> None:
        """Start init in new namespaces, plug the cable in, wait for sshd."""
        self.spawn(node, [*_UNSHARE, "--kill-child", "--mount-proc"], self._config(node))
        assert node.outer is not None
        node.init = processes.children(node.outer.pid)[0]
        self.record(node, node.init)
        link = self.state.links[node.name]
        _ip(
            f"link add {link} type veth peer name eth0 address {self._hardware_address(node)} netns {node.init}",
            f"link set {link} master {self.state.bridge} addrgenmode none up",
        )
        _ip(
            "link set lo up",
            f"addr add {node.address}/{self._subnet.prefixlen} dev eth0",
            "link set eth0 up",
            f"route add default via {self._gateway}",
            inside=node.init,
        )
        self.start_sshd(node)

    def _hardware_address(self, node: LocalNode) -> str:
        # The same one after a reboot, or the peers would still talk to the old one for a while.
        digits = f"02{self.state.id}{list(self.nodes).index(node.name):02x}"
        return ":".join(digits[start : start + 2] for start in range(0, 12, 2))

    def stop(self, node: LocalNode) -> None:
        """End the node; the kernel kills what its first process leaves. Its cable goes with its network."""
        super().stop(node)
        # The kernel frees a network a little later; do not wait for that.
        call(["ip", "link", "delete", self.state.links[node.name]], check=False)

    def members(self, node: LocalNode) -> list[Member]:
        """The node's processes except init."""
        return processes.in_pid_namespace(node.init)

    def inside(self, node: LocalNode) -> list[str]:
        """Enter the node's namespaces."""
        return ["nsenter", "--target", str(node.init), "--net", "--pid", "--ipc", "--uts", "--mount", "--"]

    def set_link(self, node: LocalNode, *, up: bool) -> None:
        """Plug the node's cable in or out."""
        _ip(f"link set {self.state.links[node.name]} {'up' if up else 'down'}")

    def remove(self) -> None:
        """Kill what the state names and delete its network devices."""
        self.kill_recorded()
        for device in [*self.state.links.values(), self.state.bridge]:
            if device:
                call(["ip", "link", "delete", device], check=False)
        left = {link["ifname"] for link in json.loads(call(["ip", "-j", "link"]).stdout)}
        still = left & {*self.state.links.values(), self.state.bridge}
        if still:
            raise InfraError(f"network devices of local nodes cannot be deleted: {', '.join(sorted(still))}")

    def _config(self, node: LocalNode) -> dict[str, object]:
        hosts = node.folder / "hosts"
        lines = ["127.0.0.1 localhost", *(f"{peer.address} {peer.name}" for peer in self.nodes.values())]
        hosts.write_text("\n".join(lines) + "\n")
        # A node that was restarted must look like one, though the kernel is still the same.
        boot_id = node.folder / "boot_id"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        binds = [(str(hosts), "/etc/hosts"), (str(boot_id), "/proc/sys/kernel/random/boot_id")]
        # There is no name server here; without any to ask, a name that is not in hosts fails at once.
        if Path("/etc/resolv.conf").exists():
            binds.append(("/dev/null", "/etc/resolv.conf"))
        # A node does not run what this machine's user has in the shell's start file.
        if (rc := Path.home() / ".bashrc").is_file():
            binds.append(("/dev/null", str(rc)))
        if shadow := sshd.minimal_shadow(node.folder):
            binds.append((str(shadow), "/etc/shadow"))
        hide = [str(peer.folder) for peer in self.nodes.values() if peer.name != node.name]
        return self.config(node, isolated=True) | {"binds": binds, "hide": hide}


def _ip(*commands: str, inside: int = 0) -> None:
    prefix = ["nsenter", "--target", str(inside), "--net", "--"] if inside else []
    call([*prefix, "ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
