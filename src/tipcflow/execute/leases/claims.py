"""A run's claims on its nodes: they separate controllers that use different databases."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from tipcflow.execute.node.listing import running_jobs
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.node.session import NodeSession
from tipcflow.remote import claims
from tipcflow.remote.host_slots import runs_holding, short

if TYPE_CHECKING:
    from tipcflow.store import Store

# Added to a run's budget: preflight before it, closing and listing after it.
MORE_S = 1800.0


class NodeClaims:
    """The claims of one run, on all of its nodes or on none.

    Args:
        slots: (node address, slot) of the slots that the run leases.
        budget_s: duration of its steps; a claim that is not released expires half an hour later.
    """

    def __init__(
        self,
        store: "Store",
        nodes: Nodes,
        run: str,
        slots: Iterable[tuple[str, int]],
        *,
        owner: str,
        budget_s: float,
    ) -> None:
        self._store = store
        self._nodes = nodes
        self._run = run
        self._owner = owner
        self._seconds = budget_s + MORE_S
        self._slots: dict[str, list[int]] = defaultdict(list)
        for node, slot in slots:
            self._slots[node].append(slot)
        # The largest fence found on a node when its slots were claimed: a newer lease gets a larger one.
        self.fence = 0

    def take(self) -> Mapping[str, set[str]]:
        """Claim the slots; return node address -> runs that are running there without a lease in this database.

        If there are any, nothing stays claimed. An unreachable node is skipped; its next use reports the error.
        """
        holders: dict[str, set[str]] = defaultdict(set)
        for lease in self._store.leases.all():
            holders[lease.node].add(lease.run)
        others = self._nodes.on_reachable(lambda session: self._take(session, holders[session.node.address]))
        foreign = {node: runs for node, runs in others.items() if runs}
        if foreign:
            self.release()
        return foreign

    def release(self) -> None:
        """Release the claims on all reachable nodes."""
        self._nodes.on_reachable(lambda session: session.unclaim(self._run))

    def _take(self, session: NodeSession, holders: Collection[str]) -> set[str]:
        """Return other runs on one node; if there are none, claim its slots."""
        slots = self._slots.get(session.node.address)
        if slots is None:
            return set()
        claimed = self._claim(session, slots, ())
        # A run of this database without a lease is over, even if the node still has its claim.
        if over := set(self._store.runs.known(sorted(claimed))) - set(holders):
            claimed = self._claim(session, slots, over)
        if claimed:
            return claimed
        listed = session.list_ours()
        living = {job.run for job in running_jobs(listed)}
        own = {self._run, *holders}
        elsewhere = runs_holding(listed, session.node, slots) - {short(run) for run in own | living}
        return (living - own) | elsewhere

    def _claim(self, session: NodeSession, slots: Collection[int], void: Iterable[str]) -> set[str]:
        command = claims.claim(
            session.node, self._run, slots=slots, seconds=self._seconds, owner=self._owner, void=void
        )
        response = session.call_json(command, "take a claim")
        self.fence = max(self.fence, int(response["fence"]))
        return {str(other["run"]) for other in response["others"]}
