"""All nodes of a run, asked at the same time."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from tipcflow.config.waits import Waits
from tipcflow.domain import Attempt, Cluster, InfraError, JobSpec, NodeFacts, StoppedBy
from tipcflow.execute.node.fetch import Fetched
from tipcflow.execute.node.inline_files import NOTHING_SENT, Sent
from tipcflow.execute.node.session import Connect, NodeSession
from tipcflow.remote import ports
from tipcflow.remote.host_slots import runs_holding, short
from tipcflow.transport.connect import connect as connect_from_here

T = TypeVar("T")
# States of a job whose runner lives (docs/reference/job-folder.md).
LIVING = ("staging", "staged", "running")


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
        """Connect to every node and make it ready to be asked.

        Raises:
            InfraError: of the first node, in the cluster's order, that cannot be used.
        """
        self._each(NodeSession.prepare)

    def connect_what_can_be(self) -> None:
        """Connect to every node that answers, so that `clean` asks it; the others are told of by `clean`."""

        def one(session: NodeSession) -> None:
            with contextlib.suppress(InfraError):
                session.mark_used()
                session.prepare()

        self._each(one)

    def facts(self) -> list[NodeFacts]:
        """What every node says about itself, and whether it reaches the others."""

        def ask(session: NodeSession) -> NodeFacts:
            peers = {}
            for name, other in self._sessions.items():
                if name != session.node.name:
                    port = other.node.ssh.port or 22
                    peers[name] = f"{other.node.address}:{port}"
            return session.facts(peers)

        return self._each(ask)

    def used_ports(self) -> set[int]:
        """TCP ports that are in use on some node."""
        tables = self._each(lambda session: session.ask(ports.list_ports(), "list its ports"))
        return {port for table in tables for port in ports.ports_in(table.decode(errors="replace"))}

    def deploy(self, run: str, archive: bytes, sha256: str) -> None:
        """Put the suite's code on every node."""
        self._each(lambda session: session.deploy(run, archive, sha256))

    def start(self, specs: Sequence[JobSpec]) -> list[dict[str, Any]]:
        """Start several nodes' jobs at once, or find them; the runners' answers.

        Raises:
            InfraError: of the first, in that order, that could not be asked.
        """
        return self._at_once(specs, lambda spec: self[spec.node].start(spec))

    def go(self, specs: Sequence[JobSpec]) -> None:
        """Let several staged jobs begin at once."""
        self._at_once(specs, lambda spec: self[spec.node].go(spec))

    def stop(self, specs: Sequence[JobSpec], reason: str, by: StoppedBy) -> dict[str, str]:
        """Ask several jobs' runners to end them; node -> why it could not be asked."""

        def one(spec: JobSpec) -> str:
            try:
                self[spec.node].stop(spec, reason, by)
            except InfraError as error:
                return str(error)
            return ""

        answers = self._at_once(specs, one)
        return {spec.node: said for spec, said in zip(specs, answers, strict=True) if said}

    def fetch(
        self, spec: JobSpec, artefacts: Iterable[str] | None, local: Path, *, limit: int, sent: Sent = NOTHING_SENT
    ) -> Fetched:
        """Fetch a job's logs and artefacts; see NodeSession.fetch."""
        return self._sessions[spec.node].fetch(spec, artefacts, local, limit=limit, sent=sent)

    def holds_nothing_of(self, node: str, run: str) -> bool:
        """Whether the node of that address was listed and is empty of that run; False when it cannot be listed."""
        session = next(one for one in self._sessions.values() if one.node.address == node)
        try:
            listed = session.list_ours()
        except InfraError:
            return False
        if short(run) in runs_holding(listed, session.node):
            return False
        return not any(str(process["job"]).startswith(f"{run}/") for process in listed["processes"])

    def each_that_answers(self, task: Callable[[NodeSession], T]) -> dict[str, T]:
        """Node address -> the task's answer; nodes that cannot be asked are left out."""

        def one(session: NodeSession) -> list[T]:
            try:
                return [task(session)]
            except InfraError:
                return []

        sessions = list(self._sessions.values())
        with ThreadPoolExecutor(len(sessions)) as pool:
            found = zip(sessions, pool.map(one, sessions), strict=True)
            return {session.node.address: answers[0] for session, answers in found if answers}

    def clean(self, run: str) -> list[str]:
        """List every node, end what is left of the run, and say what there was; never raises.

        Returns:
            a line per node with leftovers, or that could not be listed.
        """

        def sweep(session: NodeSession) -> str:
            name = session.node.name
            try:
                listed = session.list_ours()
                left = [p for p in listed["processes"] if str(p["job"]).startswith(f"{run}/")]
                stayed: list[str] = []
                for job in sorted({str(process["job"]) for process in left}):
                    stayed += stayed_of(session.reap(job))
                if any(helper.get("over") for helper in listed.get("helpers", ())):
                    stayed += stayed_of(session.end_helpers())
                if stayed:
                    # Its slots are kept: the next run must not start beside it.
                    self.unlisted.add(session.node.address)
                    return f"still on node {name} after SIGKILL: {', '.join(stayed)}; its slots are kept"
                with contextlib.suppress(InfraError):  # it ends by itself
                    session.unclaim(run)
            except InfraError as error:
                self.unlisted.add(session.node.address)
                return f"node {name} could not be listed for leftovers: {error.message}"
            if not left:
                return ""
            said = ", ".join(f"{process['pid']} ({str(process['cmdline'])[:60]})" for process in left)
            return f"processes of the run were left on node {name} and were ended: {said}"

        # Also those whose connection was lost: they are asked over a new one.
        connected = [session for session in self._sessions.values() if session.was_connected]
        with ThreadPoolExecutor(max(1, len(connected))) as pool:
            return [line for line in pool.map(sweep, connected) if line]

    def may_hold(self, attempts: Sequence[Attempt]) -> set[str]:
        """Addresses of the nodes that `clean` could not list, of those that something was tried on."""
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
        """The task on all nodes at once; the first error, in the cluster's order, is raised."""
        with ThreadPoolExecutor(len(self._sessions)) as pool:
            futures = [pool.submit(task, session) for session in self._sessions.values()]
            return [future.result() for future in futures]


def stayed_of(answer: Mapping[str, Any]) -> list[str]:
    """What the runner's `reap` could not end, in words."""
    stayed = [
        f"pid {process['pid']} ({str(process.get('cmdline', ''))[:60]}, user {process.get('user', '?')})"
        for process in answer["left"]
    ]
    return stayed + [
        f"container {one['container']} ({one['message']})"
        for one in answer.get("containers", ())
        if not one["removed"]
    ]
