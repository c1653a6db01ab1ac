"""What the two kinds of local nodes have in common."""

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
    """One node while it exists.

    Attributes:
        folder: holds its keys, log and workspace.
        outer: the child process of ours that the node lives under.
        init: its first process, as this machine sees it.
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
        """The folder that the pipeline may use on the node."""
        return self.folder / "workspace"


class Backend(ABC):
    """Makes, ends and inspects nodes of one kind."""

    kind = ""

    def __init__(self, state: State) -> None:
        self.state = state
        self.folder = Path(state.folder)
        self.nodes: dict[str, LocalNode] = {}
        self._saving = threading.Lock()

    @abstractmethod
    def plan(self, names: tuple[str, ...]) -> None:
        """Choose addresses and the names of what will be made, and write them to the state. Makes nothing."""

    @abstractmethod
    def open(self) -> None:
        """Make what the nodes share."""

    @abstractmethod
    def start(self, node: LocalNode) -> None:
        """Bring the node up until its sshd greets."""

    @abstractmethod
    def members(self, node: LocalNode) -> list[Member]:
        """The node's processes except init, ended ones included."""

    @abstractmethod
    def inside(self, node: LocalNode) -> list[str]:
        """What stands before a command to run it in the node."""

    @abstractmethod
    def set_link(self, node: LocalNode, *, up: bool) -> None:
        """Plug the node's cable in or out."""

    @abstractmethod
    def remove(self) -> None:
        """Take down what the state names, also when another process made it. Idempotent."""

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
        """Start the node's init, and note who it is.

        Raises:
            InfraError: it did not come up.
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
        """Note a process of the node in the state."""
        with self._saving:
            self.state.processes[node.name].append((pid, start_time(pid)))
            self.state.save()

    def _wait_ready(self, node: LocalNode, outer: subprocess.Popen[bytes]) -> None:
        assert outer.stdout is not None
        with outer.stdout as stdout:
            readable, _, _ = select.select([stdout], [], [], READY_DEADLINE_S)
            if not readable or not stdout.readline().startswith(b"ready"):
                raise InfraError(
                    f"node {node.name} did not come up: {sshd.last_line(node.folder / 'init.log')}", node=node.name
                )

    def config(self, node: LocalNode, *, isolated: bool) -> dict[str, object]:
        """What init needs to know."""
        return {
            "isolated": isolated,
            "hostname": node.name,
            "marker": self.marker(node),
            "sshd": sshd.write_config(node.folder, address=node.address, port=node.port, marker=self.marker(node)),
            "log": str(node.folder / "sshd.log"),
            "pid_file": str(node.folder / "sshd.pid"),
        }

    def marker(self, node: LocalNode) -> str:
        """NAME=VALUE that the node's processes have in their environment."""
        return f"{self.state.marker}{node.name}/"

    def start_sshd(self, node: LocalNode) -> None:
        """Start the node's sshd unless it runs, and wait until it greets."""
        os.kill(node.init, signal.SIGUSR1)
        sshd.wait_for_sshd(node.name, node.address, node.port, node.folder)

    def kill_sshd(self, node: LocalNode) -> None:
        """SIGKILL the listening sshd and its connections, and wait until they are gone."""

        def gone() -> bool:
            left = [member for member in self.members(node) if member.is_sshd]
            for member in left:
                with contextlib.suppress(OSError):
                    os.kill(member.pid, signal.SIGKILL)
            return not left

        wait_until(gone, f"sshd of node {node.name} ends", deadline_s=10.0)

    def kill_recorded(self) -> None:
        """End the processes that the state names: TERM, for init ends its children; SIGKILL if that is in vain.

        Raises:
            InfraError: they do not end.
        """
        recorded = [(pid, started) for entries in self.state.processes.values() for pid, started in entries]

        def gone() -> bool:
            return not any(started and start_time(pid) == started for pid, started in recorded)

        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid, started in recorded:
                kill_if_same(pid, started, number)
            with contextlib.suppress(InfraError):
                return wait_until(gone, "", deadline_s=READY_DEADLINE_S)
        raise InfraError(f"processes of local nodes do not end: {recorded}")
