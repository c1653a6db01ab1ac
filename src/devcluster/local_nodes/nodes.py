"""Local SSH nodes with a real OpenSSH server: for the demo, the tests and the benchmarks alike.

As root each node is a set of namespaces (`kind` "namespaces"); without root it is a loopback address with an
unprivileged sshd ("loopback"). Both leave nothing behind when they are closed, also after an exception, Ctrl-C or
SIGTERM; what a SIGKILL leaves is removed by the next start.
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

from devcluster.local_nodes import namespaces, sshd, state
from devcluster.local_nodes.backend import Backend, LocalNode
from devcluster.local_nodes.loopback import Loopback
from devcluster.local_nodes.namespaces import Namespaces
from devcluster.local_nodes.processes import Process, describe
from devcluster.signals import GATE
from tipcflow.domain import Cluster, Node, SshTarget

Kind = Literal["namespaces", "loopback"]


def _say_nothing(_message: str) -> None:
    pass


@contextmanager
def local_nodes(
    home: Path,
    *,
    names: Sequence[str] = ("a", "b"),
    slots: int = 2,
    python: Path | None = None,
    env: Mapping[str, str] | None = None,
    mode: Kind | None = None,
    report: Callable[[str], None] = _say_nothing,
) -> Iterator["LocalNodes"]:
    """Nodes that exist as long as the `with` block.

    Args:
        home: keys, logs and workspaces go below it, in a folder that is removed at the end.
        slots: CPU processes that one run may use on each node.
        python: interpreter of the nodes' environment; default: the one that runs this.
        env: environment of every step on the nodes; default: one OpenMP thread, for all nodes share this machine.
        mode: which kind; default: namespaces where they can be made, else loopback.
        report: gets one line per thing worth telling, such as the clean-up of a killed demo's leftovers.

    Raises:
        InfraError: the nodes cannot be made here; says why.
        Interrupted: Ctrl-C or SIGTERM came; everything is taken down first.
    """
    nodes: LocalNodes | None = None
    with GATE.installed():
        try:
            with GATE.hold():
                nodes = LocalNodes(
                    home, names=tuple(names), slots=slots, python=python, env=env, mode=mode, report=report
                )
            yield nodes
        finally:
            # A signal raises once at most: if one lands here before the hold, the outer block still closes.
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
        cluster: how the pipeline sees them.
        kind: namespaces or loopback.
    """

    def __init__(
        self,
        home: Path,
        *,
        names: tuple[str, ...] = ("a", "b"),
        slots: int = 2,
        python: Path | None = None,
        env: Mapping[str, str] | None = None,
        mode: Kind | None = None,
        report: Callable[[str], None] = _say_nothing,
    ) -> None:
        sshd.require_sshd()
        home = home.resolve()
        self._owner = os.getpid()
        self._slots = slots
        # Not resolved: the symbolic link of a virtual environment is what makes it one.
        self._python = Path(os.path.abspath(python or sys.executable))  # noqa: PTH100
        self._env = dict(env) if env is not None else {"OMP_NUM_THREADS": "1"}
        self.kind: Kind = mode or ("loopback" if namespaces.unavailable() else "namespaces")
        remove_leftovers(home, report)
        with state.locked():
            self._state, self._ownership = state.new(home, self.kind)
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
            GATE.check()
            self._state.save()
            for started in [pool.submit(self._backend.start, node) for node in nodes]:
                started.result()

    def _describe(self) -> Cluster:
        folder = self._backend.folder
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
                    python=str(self._python),
                    workspace=str(node.workspace),
                    env=self._env,
                )
                for node in self._backend.nodes.values()
            ),
        )

    @property
    def folder(self) -> Path:
        """Where the keys, logs and workspaces are; removed by `close`."""
        return self._backend.folder

    def write_cluster_file(self, path: Path) -> Path:
        """The cluster as a YAML file, as `--cluster` takes it. Returns: its path."""
        import yaml

        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.cluster.model_dump(mode="json", exclude_defaults=True)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        return path

    def processes(self, name: str) -> list[Process]:
        """What runs in the node except its first process and sshd's own; process ids as the node sees them."""
        return describe(self._backend.members(self._node(name)))

    def exec(
        self, name: str, argv: Sequence[str], *, deadline_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the node, past its sshd. Waits for its end; a failure is for the caller to see."""
        return subprocess.run(
            [*self._backend.inside(self._node(name)), *argv],
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def cut(self, name: str) -> None:
        """Pull the node's cable (namespaces only)."""
        self._backend.set_link(self._node(name), up=False)

    def restore(self, name: str) -> None:
        """Plug the node's cable in again, and wait until its sshd answers."""
        node = self._node(name)
        self._backend.set_link(node, up=True)
        sshd.wait_for_sshd(node.name, node.address, node.port, node.folder)

    def kill_sshd(self, name: str) -> None:
        """SIGKILL the node's sshd with all its connections; what they started goes on."""
        self._backend.kill_sshd(self._node(name))

    def start_sshd(self, name: str) -> None:
        """Start the node's sshd again; the host key stays the same."""
        self._backend.start_sshd(self._node(name))

    def reboot(self, name: str) -> None:
        """Power cycle: every process ends at once; files, addresses and keys stay; the boot id is a new one."""
        node = self._node(name)
        self._backend.stop(node)
        self._backend.start(node)

    def change_host_key(self, name: str) -> None:
        """Give the node another host key than the one in known_hosts, as a reinstalled machine has."""
        node = self._node(name)
        for file in (node.folder / "host_key", node.folder / "host_key.pub"):
            file.unlink()
        sshd.make_key(node.folder / "host_key", node.name)
        self.kill_sshd(name)
        self.start_sshd(name)

    def close(self) -> None:
        """Take everything down. Idempotent; signals wait until it is done.

        Raises:
            InfraError: something could not be removed; the next start tries again.
        """
        # A forked child must not take down what its parent uses.
        if os.getpid() != self._owner or not Path(self._state.folder).exists():
            return
        with GATE.hold():
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


def remove_leftovers(home: Path, report: Callable[[str], None] = _say_nothing) -> int:
    """Remove what killed owners of local nodes left behind; never touches those of living ones.

    Returns: how many sets of nodes were removed.
    """
    with state.locked():
        found = state.left_over(home)
        for old in found:
            _backend(old).remove()
            state.forget(old)
            report(f"removed what a killed process (pid {old.owner[0]}) left behind: local nodes {old.id}")
    return len(found)


def _backend(of: state.State) -> Backend:
    return Namespaces(of) if of.kind == "namespaces" else Loopback(of)
