"""Base class of the two kinds of local nodes."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from devcluster.local_nodes import init as init_module
from devcluster.local_nodes import sshd
from devcluster.local_nodes.processes import Member, kill_if_same, start_time, wait_until
from devcluster.local_nodes.state import State
from tipcflow.domain import InfraError

READY_DEADLINE_S = 10.0


@dataclass
class LocalNode:
    """One running node.

    Attributes:
        folder: folder of the node's keys, log and workspace.
        outer: this process's child that is the parent of the node.
        init: pid of the node's first process on this machine.
        lifeline: closing it ends the node.
    """

    name: str
    address: str
    port: int
    folder: Path
    outer: subprocess.Popen[bytes] | None = None
    init: int = 0
    lifeline: int = -1

    @property
    def workspace(self) -> Path:
        """Return the folder that the pipeline may use on the node."""
        return self.folder / "workspace"


class Backend(ABC):
    """Creates, ends and inspects nodes of one kind."""

    kind = ""

    def __init__(self, state: State) -> None:
        self.state = state
        self.folder = Path(state.folder)
        self.nodes: dict[str, LocalNode] = {}
        self._saving = threading.Lock()

    @abstractmethod
    def plan(self, names: tuple[str, ...]) -> None:
        """Choose addresses and names of resources, and write them to the state. Creates no resource."""

    @abstractmethod
    def open(self) -> None:
        """Create the resources that the nodes share."""

    @abstractmethod
    def start(self, node: LocalNode) -> None:
        """Start the node and wait until its sshd responds."""

    @abstractmethod
    def members(self, node: LocalNode) -> list[Member]:
        """Return the node's processes except init, including ended ones."""

    @abstractmethod
    def inside(self, node: LocalNode) -> list[str]:
        """Return the command prefix that runs a command in the node."""

    @abstractmethod
    def set_link(self, node: LocalNode, *, up: bool) -> None:
        """Set the node's network link up or down."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the state's resources, also those created by another process. Idempotent."""

    def stop(self, node: LocalNode) -> None:
        """End the node with all its processes. Idempotent."""
        if node.lifeline >= 0:
            os.close(node.lifeline)
            node.lifeline = -1
        if node.outer is not None:
            try:
                node.outer.wait(timeout=READY_DEADLINE_S)
            except subprocess.TimeoutExpired:
                node.outer.kill()
                node.outer.wait(timeout=READY_DEADLINE_S)
            node.outer = None
        node.init = 0

    def spawn(self, node: LocalNode, prefix: list[str], config: dict[str, object]) -> None:
        """Start the node's init process and record its pid.

        Raises:
            InfraError: the node did not start.
        """
        config_file = node.folder / "init.json"
        config_file.write_text(json.dumps(config))
        argv = [*prefix, sys.executable, "-I", "-S", init_module.__file__, str(config_file)]
        lifeline_end, node.lifeline = os.pipe()
        with (node.folder / "init.log").open("ab") as log:
            try:
                node.outer = subprocess.Popen(
                    argv, stdin=lifeline_end, stdout=subprocess.PIPE, stderr=log, start_new_session=True
                )
            except FileNotFoundError as error:
                raise InfraError(f"{argv[0]} is not installed on this machine") from error
            finally:
                os.close(lifeline_end)
        self.state.processes[node.name] = []
        self.record(node, node.outer.pid)
        self._wait_ready(node, node.outer)

    def record(self, node: LocalNode, pid: int) -> None:
        """Record a process of the node in the state."""
        with self._saving:
            self.state.processes[node.name].append((pid, start_time(pid)))
            self.state.save()

    def _wait_ready(self, node: LocalNode, outer: subprocess.Popen[bytes]) -> None:
        assert outer.stdout is not None
        with outer.stdout as stdout:
            readable, _, _ = select.select([stdout], [], [], READY_DEADLINE_S)
            if not readable or not stdout.readline().startswith(b"ready"):
                raise InfraError(
                    f"node {node.name} did not start: {sshd.last_line(node.folder / 'init.log')}", node=node.name
                )

    def config(self, node: LocalNode, *, isolated: bool) -> dict[str, object]:
        """Return the configuration of init."""
        return {
            "isolated": isolated,
            "hostname": node.name,
            "marker": self.marker(node),
            "sshd": sshd.write_config(node.folder, address=node.address, port=node.port, marker=self.marker(node)),
            "log": str(node.folder / "sshd.log"),
            "pid_file": str(node.folder / "sshd.pid"),
        }

    def marker(self, node: LocalNode) -> str:
        """Return NAME=VALUE, the marker in the environment of the node's processes."""
        return f"{self.state.marker}{node.name}/"

    def start_sshd(self, node: LocalNode) -> None:
        """Start the node's sshd unless it is running, and wait until it responds."""
        os.kill(node.init, signal.SIGUSR1)
        sshd.wait_for_sshd(node.name, node.address, node.port, node.folder)

    def kill_sshd(self, node: LocalNode) -> None:
        """SIGKILL the listening sshd and its connections, and wait until they have ended."""

        def has_ended() -> bool:
            left = [member for member in self.members(node) if member.is_sshd]
            for member in left:
                with contextlib.suppress(OSError):
                    os.kill(member.pid, signal.SIGKILL)
            return not left

        wait_until(has_ended, f"sshd of node {node.name} did not end", deadline_s=10.0)

    def kill_recorded(self) -> None:
        """End the state's processes: SIGTERM, because init then ends its children; SIGKILL if they remain.

        Raises:
            InfraError: the processes do not end.
        """
        recorded = [(pid, started) for entries in self.state.processes.values() for pid, started in entries]

        def have_ended() -> bool:
            return not any(started and start_time(pid) == started for pid, started in recorded)

        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid, started in recorded:
                kill_if_same(pid, started, number)
            with contextlib.suppress(InfraError):
                return wait_until(have_ended, "local nodes did not end", deadline_s=READY_DEADLINE_S)
        raise InfraError(f"processes of local nodes do not end: {recorded}")
