"""Local SSH nodes with a real OpenSSH server, for the demo, the tests and the benchmarks.

As root each node is a set of namespaces (`kind` "namespaces"). Without root, and where namespaces or the firewall
do not permit it, it is a loopback address with an unprivileged sshd ("loopback"). Both remove all their resources
on close, also after an exception, Ctrl-C or SIGTERM; the next start removes leftovers of a SIGKILL.
"""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from devcluster.local_nodes import sshd, state
from devcluster.local_nodes.backend import Backend, LocalNode
from devcluster.local_nodes.frameworks import frameworks_of
from devcluster.local_nodes.kinds import Kind, choose, sentence
from devcluster.local_nodes.loopback import Loopback
from devcluster.local_nodes.namespaces import Namespaces
from devcluster.local_nodes.processes import Process, describe
from devcluster.signals import interrupt_guard
from tipcflow.domain import Cluster, InfraError, Node, SshTarget

Device = Literal["cpu", "gpu"]


def _discard(_message: str) -> None:
    pass


@contextmanager
def local_nodes(
    home: Path,
    *,
    names: Sequence[str] = ("a", "b"),
    slots: int = 2,
    device: Device = "cpu",
    python: Path | None = None,
    env: Mapping[str, str] | None = None,
    mode: Kind | None = None,
    report: Callable[[str], None] = _discard,
) -> Iterator["LocalNodes"]:
    """Run nodes for the duration of the `with` block.

    Args:
        home: parent of the folder with keys, logs and workspaces, which is removed at the end.
        slots: number of CPU processes, or of GPUs, that one run may use on each node.
        device: cpu, or gpu: each node then has the GPUs of this machine.
        python: interpreter of the nodes' environment; default: the current interpreter.
        env: environment of every step on the nodes; default: one OpenMP thread, because all nodes share this
            machine.
        mode: kind of nodes; default: namespaces if they work on this machine, otherwise loopback.
        report: receives messages, one line each, such as the clean-up of a killed demo's leftovers.

    Raises:
        InfraError: the nodes cannot be created; the message names the cause.
        Interrupted: Ctrl-C or SIGTERM was received; all resources are removed first.
    """
    nodes: LocalNodes | None = None
    with interrupt_guard.installed():
        try:
            with interrupt_guard.hold():
                nodes = LocalNodes(
                    home,
                    names=tuple(names),
                    slots=slots,
                    device=device,
                    python=python,
                    env=env,
                    mode=mode,
                    report=report,
                )
            yield nodes
        finally:
            # A signal raises at most once: if it arrives here before the hold, the outer block still closes.
            try:
                _close(nodes)
            finally:
                _close(nodes)


def _close(nodes: "LocalNodes | None") -> None:
    if nodes is not None:
        nodes.close()


class LocalNodes:
    """Running local nodes. Prefer `local_nodes`, which also handles signals.

    Attributes:
        cluster: the nodes as the pipeline's cluster.
        kind: namespaces or loopback.
        reason: why the kind is loopback, '' for namespaces.
    """

    kind: Kind
    reason: str

    def __init__(
        self,
        home: Path,
        *,
        names: tuple[str, ...] = ("a", "b"),
        slots: int = 2,
        device: Device = "cpu",
        python: Path | None = None,
        env: Mapping[str, str] | None = None,
        mode: Kind | None = None,
        report: Callable[[str], None] = _discard,
    ) -> None:
        sshd.require_sshd()
        home = home.resolve()
        self._owner = os.getpid()
        self._slots = slots
        self._device = device
        # Not resolved: a virtual environment is identified by its symbolic link.
        self._python = Path(os.path.abspath(python or sys.executable))  # noqa: PTH100
        self._env = dict(env) if env is not None else {"OMP_NUM_THREADS": "1"}
        kind, reason = choose(mode)
        remove_leftovers(home, report)
        try:
            self._set_up(home, names, kind, reason)
        except InfraError as error:
            if mode is not None or kind == "loopback":
                raise
            reason = f"nodes in network namespaces failed: {error.message}"
            report(f"local nodes are {sentence('loopback', reason)}")
            self._set_up(home, names, "loopback", reason)

    def _set_up(self, home: Path, names: tuple[str, ...], kind: Kind, reason: str) -> None:
        self.kind, self.reason = kind, reason
        with state.locked():
            self._state, self._ownership = state.new(home, kind)
            self._backend = _backend(self._state)
            atexit.register(self.close)
            try:
                self._backend.plan(names)
                self._backend.open()
            except BaseException:
                self.close()
                raise
        try:
            self._start_all()
            self.cluster = self._describe()
        except BaseException:
            self.close()
            raise

    def _start_all(self) -> None:
        folder = self._backend.folder
        nodes = list(self._backend.nodes.values())
        for node in nodes:
            node.workspace.mkdir(parents=True)
        with ThreadPoolExecutor(max_workers=len(nodes) + 1) as pool:
            client = pool.submit(sshd.make_key, folder / "id_ed25519", "tipcflow local nodes")
            hosts = pool.map(lambda node: sshd.make_key(node.folder / "host_key", node.name), nodes)
            known = [
                sshd.known_hosts_line(node.address, node.port, key) for node, key in zip(nodes, hosts, strict=True)
            ]
            for node in nodes:
                (node.folder / "authorized_keys").write_text(client.result() + "\n")
            (folder / "known_hosts").write_text("".join(known))
            interrupt_guard.check()
            self._state.save()
            for started in [pool.submit(self._backend.start, node) for node in nodes]:
                started.result()

    def _describe(self) -> Cluster:
        folder = self._backend.folder
        frameworks = frameworks_of(self._python)
        return Cluster(
            name="local",
            nodes=tuple(
                Node(
                    name=node.name,
                    address=node.address,
                    connection=f"tipcflow_local_{node.name}",
                    ssh=SshTarget(
                        host=node.address,
                        port=node.port,
                        user=sshd.user(),
                        identity_file=str(folder / "id_ed25519"),
                        known_hosts=str(folder / "known_hosts"),
                    ),
                    slots=self._slots,
                    device=self._device,
                    python=str(self._python),
                    workspace=str(node.workspace),
                    env=self._env,
                    frameworks=frameworks,
                )
                for node in self._backend.nodes.values()
            ),
        )

    @property
    def sentence(self) -> str:
        """Return one sentence about the nodes and their kind."""
        names = list(self._backend.nodes)
        nodes = f"{len(names)} nodes, {', '.join(names[:-1])} and {names[-1]}" if names[1:] else f"node {names[0]}"
        return f"{nodes}: {sentence(self.kind, self.reason)}"

    @property
    def folder(self) -> Path:
        """Return the folder of keys, logs and workspaces; removed by `close`."""
        return self._backend.folder

    def write_cluster_file(self, path: Path) -> Path:
        """Write the cluster as a YAML file for `--cluster`. Returns: its path."""
        import yaml

        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.cluster.model_dump(mode="json", exclude_defaults=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        return path

    def processes(self, name: str) -> list[Process]:
        """Return the node's processes except init and those of sshd, with pids of the node's namespace."""
        return describe(self._backend.members(self._node(name)))

    def exec(
        self, name: str, argv: Sequence[str], *, deadline_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the node without sshd and wait for its end; a failure is returned, not raised."""
        return subprocess.run(
            [*self._backend.inside(self._node(name)), *argv],
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def ended(self) -> list[str]:
        """Return the names of nodes whose first process ended by itself."""
        nodes = self._backend.nodes.values()
        return [node.name for node in nodes if node.outer is not None and node.outer.poll() is not None]

    def cut(self, name: str) -> None:
        """Set the node's network link down (namespaces only)."""
        self._backend.set_link(self._node(name), up=False)

    def restore(self, name: str) -> None:
        """Set the node's network link up, and wait until its sshd responds."""
        node = self._node(name)
        self._backend.set_link(node, up=True)
        sshd.wait_for_sshd(node.name, node.address, node.port, node.folder)

    def kill_sshd(self, name: str) -> None:
        """SIGKILL the node's sshd with all its connections; processes that they started continue."""
        self._backend.kill_sshd(self._node(name))

    def start_sshd(self, name: str) -> None:
        """Restart the node's sshd with the same host key."""
        self._backend.start_sshd(self._node(name))

    def reboot(self, name: str) -> None:
        """Power cycle: every process ends immediately; files, addresses and keys are kept; the boot id changes."""
        node = self._node(name)
        self._backend.stop(node)
        self._backend.start(node)

    def change_host_key(self, name: str) -> None:
        """Give the node a host key other than the one in known_hosts, like a reinstalled machine."""
        node = self._node(name)
        for file in (node.folder / "host_key", node.folder / "host_key.pub"):
            file.unlink()
        sshd.make_key(node.folder / "host_key", node.name)
        self.kill_sshd(name)
        self.start_sshd(name)

    def close(self) -> None:
        """Remove all resources. Idempotent; signals are deferred until the end.

        Raises:
            InfraError: a resource could not be removed; the next start retries.
        """
        # A forked child must not remove its parent's resources.
        if os.getpid() != self._owner or not Path(self._state.folder).exists():
            return
        with interrupt_guard.hold():
            nodes = list(self._backend.nodes.values())
            if nodes:
                with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
                    list(pool.map(self._backend.stop, nodes))
            self._backend.remove()
            state.forget(self._state)
            self._ownership.release()
            atexit.unregister(self.close)

    def _node(self, name: str) -> LocalNode:
        return self._backend.nodes[name]


def remove_leftovers(home: Path, report: Callable[[str], None] = _discard) -> int:
    """Remove leftovers of killed owners of local nodes; never touch nodes of living owners.

    Returns: the number of removed sets of nodes.
    """
    with state.locked():
        instances = state.leftovers(home)
        for old in instances:
            _backend(old).remove()
            state.forget(old)
            report(f"removed what a killed process (pid {old.owner[0]}) left behind: local nodes {old.id}")
    return len(instances)


def _backend(of: state.State) -> Backend:
    return Namespaces(of) if of.kind == "namespaces" else Loopback(of)
