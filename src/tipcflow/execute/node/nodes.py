"""All nodes of a run, used concurrently."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tipcflow.config.waits import Waits
from tipcflow.domain import Attempt, Cluster, InfraError, JobSpec, NodeFacts, StoppedBy
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.node.fetch import Fetched
from tipcflow.execute.node.inline_files import NO_INLINE_FILES, InlineFiles
from tipcflow.execute.node.link import Connect
from tipcflow.execute.node.listing import processes
from tipcflow.execute.node.session import SHORT_QUERY_S, NodeSession
from tipcflow.remote import ports
from tipcflow.remote.host_slots import runs_holding, short
from tipcflow.transport.connect import connect as connect_from_here

T = TypeVar("T")
PEER_EVERY_S = 1.0


class Nodes:
    """The sessions of a run's nodes; a context manager that closes them."""

    def __init__(
        self,
        cluster: Cluster,
        names: Sequence[str],
        *,
        waits: Waits,
        connect: Connect = connect_from_here,
        reached_before: bool = False,
    ) -> None:
        self._sessions = {
            name: NodeSession(
                cluster.node(name),
                connect,
                silence_s=waits.silence_s,
                reconnect_s=waits.reconnect_s,
                reached_before=reached_before,
            )
            for name in names
        }
        self.reconnect_s = waits.reconnect_s
        self.silence_s = waits.silence_s
        # Addresses of nodes that `clean` could not list.
        self.unlisted: set[str] = set()

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions.values():
            session.close()

    def __getitem__(self, name: str) -> NodeSession:
        return self._sessions[name]

    def connect(self) -> None:
        """Connect to every node and prepare it.

        Raises:
            InfraError: the first error, in the cluster's order.
        """
        self._each(NodeSession.prepare)

    def connect_reachable(self) -> None:
        """Connect to every reachable node for `clean`, which reports the unreachable ones."""

        def prepare(session: NodeSession) -> None:
            with contextlib.suppress(InfraError):
                session.mark_used()
                session.prepare()

        self._each(prepare)

    def facts(self) -> list[NodeFacts]:
        """Return the facts of every node, including whether it reaches the others.

        A peer whose sshd restarts is retried for a short time, as the controller itself does.
        """

        def query_facts(session: NodeSession) -> NodeFacts:
            """Return a node's facts, with the peers that it cannot reach."""
            peers = {}
            for name, other in self._sessions.items():
                if name != session.node.name:
                    peers[name] = f"{other.node.address}:{other.node.open_port}"
            deadline = time.monotonic() + SHORT_QUERY_S
            facts = session.facts(peers)
            # Not tenacity, which raises at the deadline by default: the last facts are the result.
            while facts.unreachable and time.monotonic() < deadline:
                time.sleep(PEER_EVERY_S)
                facts = session.facts(peers)
            return facts

        return self._each(query_facts)

    def used_ports(self) -> set[int]:
        """Return the TCP ports in use on any node."""
        tables = self._each(lambda session: session.call(ports.list_ports(), "list its ports"))
        return {port for table in tables for port in ports.ports_in(table.decode(errors="replace"))}

    def deploy(self, run: str, archive: bytes, sha256: str, *, below: str = "", cached: bool = False) -> None:
        """Install the suite's code on every node; see NodeSession.deploy."""
        self._each(lambda session: session.deploy(run, archive, sha256, below=below, cached=cached))

    def put_wheel(self, file: Path, build: FrameworkBuild) -> None:
        """Copy the wheel of a framework build into the cache of every node, unless it is there."""
        self._each(lambda session: session.put_wheel(file, build))

    def stop(self, specs: Sequence[JobSpec], reason: str, by: StoppedBy) -> dict[str, str]:
        """Request the end of several jobs; return node -> error for failed requests."""

        def stop_job(spec: JobSpec) -> str:
            try:
                self[spec.node].stop(spec, reason, by)
            except InfraError as error:
                return str(error)
            return ""

        messages = self._at_once(specs, stop_job)
        return {spec.node: message for spec, message in zip(specs, messages, strict=True) if message}

    def fetch(
        self,
        spec: JobSpec,
        artefacts: Iterable[str] | None,
        local: Path,
        *,
        limit: int,
        sent: InlineFiles = NO_INLINE_FILES,
    ) -> Fetched:
        """Fetch a job's logs and artefacts; see NodeSession.fetch."""
        return self._sessions[spec.node].fetch(spec, artefacts, local, limit=limit, sent=sent)

    def has_nothing_of(self, node: str, run: str) -> bool:
        """Whether the node of that address was listed and has nothing of that run; False if it cannot be
        listed."""
        session = next(session for session in self._sessions.values() if session.node.address == node)
        try:
            listed = session.list_ours()
            return short(run) not in runs_holding(listed, session.node) and not processes(listed, run)
        except InfraError:
            return False

    def on_reachable(self, task: Callable[[NodeSession], T]) -> dict[str, T]:
        """Return node address -> result of the task; unreachable nodes are left out."""

        def run_task(session: NodeSession) -> list[T]:
            try:
                return [task(session)]
            except InfraError:
                return []

        sessions = list(self._sessions.values())
        with ThreadPoolExecutor(len(sessions)) as pool:
            pairs = zip(sessions, pool.map(run_task, sessions), strict=True)
            return {session.node.address: results[0] for session, results in pairs if results}

    def clean(self, run: str) -> list[str]:
        """List every node, end what is left of the run, and report it; never raises.

        Returns:
            a line per node with leftovers, or that could not be listed.
        """

        def sweep(session: NodeSession) -> str:
            """End the run's leftovers on a node; return a line about them, '' without any."""
            name = session.node.name
            try:
                listed = session.list_ours()
                left = processes(listed, run)
                stayed: list[str] = []
                for job in sorted({job for job, _ in left}):
                    stayed += remaining_messages(session.reap(job))
                if any(helper.get("over") for helper in listed.get("helpers", ())):
                    stayed += remaining_messages(session.end_helpers())
                if stayed:
                    # Its slots stay leased: the next run must not run in parallel with it.
                    self.unlisted.add(session.node.address)
                    return f"still on node {name} after SIGKILL: {', '.join(stayed)}; its slots stay leased"
                with contextlib.suppress(InfraError):  # it ends by itself
                    session.unclaim(run)
            except InfraError as error:
                self.unlisted.add(session.node.address)
                return f"node {name} could not be listed for leftovers: {error.message}"
            if not left:
                return ""
            listing = ", ".join(f"{process['pid']} ({str(process['cmdline'])[:60]})" for _, process in left)
            return f"processes of the run were left on node {name} and were ended: {listing}"

        # Includes nodes whose connection was lost: they are contacted over a new one.
        connected = [session for session in self._sessions.values() if session.was_connected]
        with ThreadPoolExecutor(max(1, len(connected))) as pool:
            return [line for line in pool.map(sweep, connected) if line]

    def may_hold(self, attempts: Sequence[Attempt]) -> set[str]:
        """Return the addresses of nodes that `clean` could not list and that took part in an attempt."""
        tried = {name for attempt in attempts for name in attempt.nodes}
        return {s.node.address for s in self._sessions.values() if s.node.name in tried} & self.unlisted

    def remove_run(self, run: str) -> None:
        """Remove the run's folders from every node; what cannot be removed now is left to maintenance."""
        for session in self._sessions.values():
            try:
                session.remove_run(run)
            except InfraError:
                continue

    @staticmethod
    def _at_once(specs: Sequence[JobSpec], task: Callable[[JobSpec], T]) -> list[T]:
        with ThreadPoolExecutor(max(1, len(specs))) as pool:
            futures = [pool.submit(task, spec) for spec in specs]
            return [future.result() for future in futures]

    def _each(self, task: Callable[[NodeSession], T]) -> list[T]:
        """Run the task on all nodes concurrently; raise the first error, in the cluster's order."""
        with ThreadPoolExecutor(len(self._sessions)) as pool:
            futures = [pool.submit(task, session) for session in self._sessions.values()]
            return [future.result() for future in futures]


def remaining_messages(report: Mapping[str, Any]) -> list[str]:
    """Return messages about what the runner's `reap` could not end."""
    stayed = [
        f"pid {process['pid']} ({str(process.get('cmdline', ''))[:60]}, user {process.get('user', '?')})"
        for process in report["left"]
    ]
    return stayed + [
        f"container {container['container']} ({container['message']})"
        for container in report.get("containers", ())
        if not container["removed"]
    ]
