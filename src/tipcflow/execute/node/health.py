"""Check nodes: whether they are usable, and which runs are on them."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tipcflow.domain import Frozen, InfraError, Node, NodeFacts
from tipcflow.domain.numbers.units import clock_offset, counted, size
from tipcflow.execute.node.link import Connect
from tipcflow.execute.node.listing import jobs_by_run, processes
from tipcflow.execute.node.preflight import distributions
from tipcflow.execute.node.session import NodeSession
from tipcflow.transport.connect import connect as connect_from_here

AT_ONCE = 16
# A suite with its data needs a few GiB; below this limit, runs will be refused soon.
LOW_DISK_BYTES = 5 << 30
# Logs of several nodes are compared by time, and certificates also depend on correct clocks.
SKEW_S = 2.0


class NodeHealth(Frozen):
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
        facts, messages = self.facts, []
        if facts is None:
            return []
        if "machine" not in facts.unfinished and facts.disk_free_bytes < LOW_DISK_BYTES:
            messages.append(f"only {size(facts.disk_free_bytes)} of disk free")
        if abs(facts.clock_skew_s) > SKEW_S:
            messages.append(f"clock is {clock_offset(facts.clock_skew_s)}")
        known_gpus = self.node.device == "gpu" and "gpus" not in facts.unfinished
        if known_gpus and len(facts.gpus) < self.node.slots:
            messages.append(
                f"{counted(len(facts.gpus), 'GPU')} found, {counted(self.node.slots, 'slot')} configured"
            )
        missing = {*(self.node.frameworks or ())}.difference(distributions(facts))
        if missing and "software" not in facts.unfinished:
            messages.append(f"frameworks configured, but not found: {', '.join(sorted(missing))}")
        if facts.unfinished:
            messages.append(f"no report in time: {', '.join(facts.unfinished)}")
        return messages


def check_health(nodes: Sequence[Node], connect: Connect = connect_from_here) -> list[NodeHealth]:
    """Check all nodes concurrently; installs the node runner in their workspaces and changes nothing else."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda node: _inspect(node, connect), nodes))


def _inspect(node: Node, connect: Connect) -> NodeHealth:
    with contextlib.closing(NodeSession(node, connect)) as session:
        try:
            session.prepare()
            facts, listed, claims = session.facts({}), session.list_ours(), session.unclaim()
            by_run = jobs_by_run(listed)
        except InfraError as error:
            return NodeHealth(node=node, unreachable=error.detail, hint=error.hint)
    counts = Counter(job.run for job, _ in processes(listed))
    jobs = {run: tuple(map(str, sorted(own))) for run, own in by_run.items()}
    return NodeHealth(node=node, facts=facts, jobs=jobs, processes=dict(counts), claims=claims)
