"""Check nodes: whether they are usable, and which runs are on them."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tipcflow.domain import Frozen, InfraError, Node, NodeFacts
from tipcflow.execute.node.nodes import LIVING
from tipcflow.execute.node.session import Connect, NodeSession
from tipcflow.transport.connect import connect as connect_from_here

AT_ONCE = 16
# A suite with its data needs a few GB; below this limit, runs will be refused soon.
LOW_DISK_BYTES = 5_000_000_000
# Logs of several nodes are compared by time, and certificates also depend on correct clocks.
SKEW_S = 2.0


class NodeLook(Frozen):
    """The state of a node.

    Attributes:
        unreachable: why the node is unreachable, '' if it is reachable.
        facts: the node's facts.
        jobs: run -> its running jobs (`run/step/attempt`).
        processes: run -> number of its processes.
        claims: run -> owner, for runs that claim slots on the node.
    """

    node: Node
    unreachable: str = ""
    hint: str = ""
    facts: NodeFacts | None = None
    jobs: dict[str, tuple[str, ...]] = {}
    processes: dict[str, int] = {}
    claims: dict[str, str] = {}

    @property
    def runs(self) -> list[str]:
        """The runs that have jobs, processes or claims on the node."""
        return sorted({*self.jobs, *self.processes})

    @property
    def troubles(self) -> list[str]:
        """Return messages about problems for runs on the node; empty if it is healthy."""
        if self.unreachable:
            return [self.unreachable + (f" ({self.hint})" if self.hint else "")]
        facts, found = self.facts, []
        if facts is None:
            return []
        if "machine" not in facts.unfinished and facts.disk_free_bytes < LOW_DISK_BYTES:
            found.append(f"only {facts.disk_free_bytes / 1e9:.1f} GB of disk are free")
        if abs(facts.clock_skew_s) > SKEW_S:
            ahead = "ahead" if facts.clock_skew_s > 0 else "behind"
            found.append(f"its clock is {abs(facts.clock_skew_s):.0f} s {ahead}")
        known_gpus = self.node.device == "gpu" and "gpus" not in facts.unfinished
        if known_gpus and len(facts.gpus) < self.node.slots:
            found.append(f"it shows {len(facts.gpus)} GPUs, its cluster file says {self.node.slots}")
        if facts.unfinished:
            found.append(f"it did not report in time: {', '.join(facts.unfinished)}")
        return found


def look_at(nodes: Sequence[Node], connect: Connect = connect_from_here) -> list[NodeLook]:
    """Check all nodes concurrently; installs the node runner in their workspaces and changes nothing else."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda node: _look(node, connect), nodes))


def runs_there(listed: dict[str, list[dict[str, object]]]) -> dict[str, set[str]]:
    """Return run -> its jobs that are running or have processes, from the listing of a node's runner."""
    jobs = {str(job["job"]) for job in listed["jobs"] if job["state"] in LIVING}
    jobs |= {str(process["job"]) for process in listed["processes"]}
    found: dict[str, set[str]] = {}
    for job in jobs:
        found.setdefault(job.partition("/")[0], set()).add(job)
    return found


def _look(node: Node, connect: Connect) -> NodeLook:
    with contextlib.closing(NodeSession(node, connect)) as session:
        try:
            session.prepare()
            facts, listed, claims = session.facts({}), session.list_ours(), session.unclaim()
        except InfraError as error:
            return NodeLook(
                node=node, unreachable=error.message.removeprefix(f"node {node.name}: "), hint=error.hint
            )
    processes = Counter(str(process["job"]).partition("/")[0] for process in listed["processes"])
    jobs = {run: tuple(sorted(names)) for run, names in runs_there(listed).items()}
    return NodeLook(node=node, facts=facts, jobs=jobs, processes=dict(processes), claims=claims)
