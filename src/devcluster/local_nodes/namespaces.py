"""Local nodes as root: each node has its own network, processes, mounts, host name and shared memory.

The links (veth pairs) connect to a bridge in a separate network namespace, the switch. In this machine's own
namespace, Docker or a firewall drops packets between nodes (`iptables -P FORWARD DROP` with
`bridge-nf-call-iptables`).

The namespaces have no names: a node's namespaces, mounts and end of the link disappear with its first process.
The switch ends with a process that reads from its owner. A killed owner can leave only this machine's link to
the switch, for a moment; the state records its name.
"""

import json
import os
import secrets
import select
import shutil
import subprocess
import uuid
from pathlib import Path

from devcluster.local_nodes import processes, sshd
from devcluster.local_nodes.backend import READY_DEADLINE_S, Backend, LocalNode
from devcluster.local_nodes.processes import Member
from devcluster.local_nodes.subnet import free_subnet
from devcluster.shell import call
from tipcflow.domain import InfraError

_BRIDGE, _UPLINK = "bridge", "uplink"
_UNSHARE = ["unshare", "--net", "--pid", "--ipc", "--uts", "--mount", "--propagation", "slave", "--fork"]


def unavailable() -> str:
    """Return why this machine or user cannot run namespace nodes, with the remedy if any ('' if it can)."""
    if os.geteuid() != 0:
        return "network namespaces require root"
    for program, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2")):
        if not shutil.which(program):
            return f"the program {program} is missing: install the package {package}"
    try:
        return _refused()
    except InfraError as error:
        return error.message


def _refused() -> str:
    """Return what the kernel refuses: a node's namespaces, the switch, or the link to it ('' for nothing)."""
    probe = call([*_UNSHARE, "--mount-proc", "ip", "link", "set", "lo", "up"], check=False)
    if probe.returncode:
        return f"network namespaces are not permitted here, as in most containers: {_last(probe.stderr)}"
    bridge = call(["unshare", "--net", "ip", "link", "add", _BRIDGE, "type", "bridge"], check=False)
    if bridge.returncode:
        return f"the kernel has no network bridges: {_last(bridge.stderr)}"
    name = f"tf{secrets.token_hex(4)}"
    cable = call(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"], check=False)
    call(["ip", "link", "delete", name], check=False)
    return f"the kernel has no virtual network links (veth): {_last(cable.stderr)}" if cable.returncode else ""


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason given"


class Namespaces(Backend):
    """Nodes in namespaces, connected by a switch to which this machine has a link."""

    kind = "namespaces"
    _switch: subprocess.Popen[bytes] | None = None
    _switch_end = -1

    def plan(self, names: tuple[str, ...]) -> None:
        """Choose a free network; this machine's end of the link gets its first address."""
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
        """Create the switch, and this machine's link to it."""
        cable = self.state.bridge
        switch = self._start_switch()
        _ip(
            f"link add {_BRIDGE} type bridge stp_state 0 forward_delay 0",
            f"link set {_BRIDGE} addrgenmode none up",
            "link set lo up",
            inside=switch,
        )
        _ip(
            f"link add {cable} type veth peer name {_UPLINK} netns {switch}",
            f"link set {cable} addrgenmode none",
            f"addr add {self._gateway}/{self._subnet.prefixlen} dev {cable}",
            f"link set {cable} up",
        )
        _ip(f"link set {_UPLINK} master {_BRIDGE} addrgenmode none up", inside=switch)

    def _start_switch(self) -> int:
        """Start the process that holds the switch's namespace and ends with this process. Returns: its pid."""
        theirs, self._switch_end = os.pipe()
        marker, _, value = self.state.marker.partition("=")
        try:
            self._switch = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
                stdin=theirs,
                stdout=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, marker: f"{value}switch/"},
            )
        finally:
            os.close(theirs)
        pid = self._switch.pid
        self.state.processes["switch"] = [(pid, processes.start_time(pid))]
        self.state.save()
        assert self._switch.stdout is not None
        readable, _, _ = select.select([self._switch.stdout], [], [], READY_DEADLINE_S)
        if not readable or not self._switch.stdout.readline().startswith(b"ready"):
            raise InfraError("the switch of the local nodes did not start")
        return pid

    def start(self, node: LocalNode) -> None:
        """Start init in new namespaces, set the link up, and wait for sshd."""
        self.spawn(node, [*_UNSHARE, "--kill-child", "--mount-proc"], self._config(node))
        assert node.outer is not None
        node.init = processes.children(node.outer.pid)[0]
        self.record(node, node.init)
        link = self.state.links[node.name]
        _ip(
            f"link add {link} type veth peer name eth0 address {self._hardware_address(node)} netns {node.init}",
            f"link set {link} master {_BRIDGE} addrgenmode none up",
            inside=self._switch_pid,
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
        # The MAC address is the same after a reboot, because peers cache the previous one.
        digits = f"02{self.state.id}{list(self.nodes).index(node.name):02x}"
        return ":".join(digits[start : start + 2] for start in range(0, 12, 2))

    def stop(self, node: LocalNode) -> None:
        """End the node; the kernel kills its remaining processes and removes its link with its network."""
        super().stop(node)
        # The kernel frees a network after a short delay; do not wait for it.
        if self._switch is not None and self._switch.poll() is None:
            call([*_inside(self._switch_pid), "ip", "link", "delete", self.state.links[node.name]], check=False)

    def members(self, node: LocalNode) -> list[Member]:
        """Return the node's processes except init."""
        return processes.in_pid_namespace(node.init)

    def inside(self, node: LocalNode) -> list[str]:
        """Return the prefix that enters the node's namespaces."""
        return ["nsenter", "--target", str(node.init), "--net", "--pid", "--ipc", "--uts", "--mount", "--"]

    def set_link(self, node: LocalNode, *, up: bool) -> None:
        """Set the node's network link up or down."""
        _ip(f"link set {self.state.links[node.name]} {'up' if up else 'down'}", inside=self._switch_pid)

    def remove(self) -> None:
        """Kill the state's processes and delete this machine's end of the link."""
        if self._switch_end >= 0:
            os.close(self._switch_end)
            self._switch_end = -1
        if self._switch is not None:
            self._switch.kill()
            if self._switch.stdout is not None:
                self._switch.stdout.close()
            self._switch.wait(timeout=READY_DEADLINE_S)
            self._switch = None
        self.kill_recorded()
        cable = self.state.bridge
        if cable:
            call(["ip", "link", "delete", cable], check=False)
        if cable in {link["ifname"] for link in json.loads(call(["ip", "-j", "link"]).stdout)}:
            raise InfraError(f"the network device {cable} of local nodes cannot be deleted")

    @property
    def _switch_pid(self) -> int:
        """Return the pid of the process that holds the switch's namespace."""
        assert self._switch is not None
        return self._switch.pid

    def _config(self, node: LocalNode) -> dict[str, object]:
        hosts = node.folder / "hosts"
        lines = ["127.0.0.1 localhost", *(f"{peer.address} {peer.name}" for peer in self.nodes.values())]
        hosts.write_text("\n".join(lines) + "\n")
        # A restarted node gets a new boot id, although the kernel is the same.
        boot_id = node.folder / "boot_id"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        binds = [(str(hosts), "/etc/hosts"), (str(boot_id), "/proc/sys/kernel/random/boot_id")]
        # The node has no name server; with an empty list, names that are not in hosts fail immediately.
        if Path("/etc/resolv.conf").exists():
            binds.append(("/dev/null", "/etc/resolv.conf"))
        # A node does not run the start file of the user's shell on this machine.
        if (rc := Path.home() / ".bashrc").is_file():
            binds.append(("/dev/null", str(rc)))
        if shadow := sshd.minimal_shadow(node.folder):
            binds.append((str(shadow), "/etc/shadow"))
        hide = [str(peer.folder) for peer in self.nodes.values() if peer.name != node.name]
        return self.config(node, isolated=True) | {"binds": binds, "hide": hide}


def _inside(pid: int) -> list[str]:
    """Return the command prefix that enters a process's network; 0 is this machine's own network."""
    return ["nsenter", "--target", str(pid), "--net", "--"] if pid else []


def _ip(*commands: str, inside: int = 0) -> None:
    call([*_inside(inside), "ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
