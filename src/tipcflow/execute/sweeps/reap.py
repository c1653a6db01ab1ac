"""End what dead controllers left on nodes. Runs with a live lease are never touched."""

import contextlib
from typing import TYPE_CHECKING, Any

from tipcflow.domain import Frozen, InfraError, Node, StoppedBy
from tipcflow.domain.run.names import JobId
from tipcflow.execute.leases.messages import clock, format_slots
from tipcflow.execute.node.link import Connect
from tipcflow.execute.node.listing import jobs_by_run
from tipcflow.execute.node.nodes import remaining_messages
from tipcflow.execute.node.session import NodeSession
from tipcflow.remote import housekeeping
from tipcflow.remote.host_slots import runs_holding, short

if TYPE_CHECKING:
    from tipcflow.store import Lease, Store


class Reaped(Frozen):
    """The result for one node.

    Attributes:
        unreachable: why the node is unreachable, '' if it is reachable.
        lines: findings and actions.
        ended: runs whose jobs or processes were ended.
    """

    node: str
    unreachable: str = ""
    lines: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


class Reaper:
    """Checks nodes, ends jobs and processes of runs without a live lease, drops their expired leases.

    Args:
        run: only this run, even if the database does not know it. '' for all runs of the database.
        ended_only: do not touch runs without a status, because they may be continued.
        now: seconds since the epoch.
        by: initiator for jobs that are still running.
    """

    def __init__(
        self,
        store: "Store",
        connect: Connect,
        *,
        now: float,
        run: str = "",
        ended_only: bool = False,
        by: StoppedBy = StoppedBy.CONTROLLER,
    ) -> None:
        self._store = store
        self._connect = connect
        self._now = now
        self._run = run
        self._ended_only = ended_only
        self._by = by

    def reap(self, node: Node) -> Reaped:
        """Check and clean one node."""
        lines: list[str] = []
        ended: list[str] = []
        with contextlib.closing(NodeSession(node, self._connect)) as session:
            try:
                if not self._leases(node) and not session.call(
                    housekeeping.list_runs(node), "list its run folders"
                ):
                    # Without creating a workspace: an unused node is not changed.
                    return Reaped(node=node.name)
                session.prepare()
                listed = session.list_ours()
                if any(helper.get("over") for helper in listed.get("helpers", ())):
                    lines += self._end_helpers(session)
                there = self._there(session, listed)
                for run, jobs in sorted(there.items()):
                    if self._run not in ("", run):
                        continue
                    why = self._spared(node, run)
                    lines.append(f"run {run}: {why or self._end(session, run, sorted(jobs), self._by)}")
                    ended += [] if why else [run]
                elsewhere = runs_holding(session.list_ours(), node) if self._leases(node) else set()
                now = set(self._there(session, session.list_ours())) if ended else set(there)
                lines += self._drop(node, now, elsewhere)
            except InfraError as error:
                return Reaped(node=node.name, unreachable=error.detail, lines=tuple(lines), ended=tuple(ended))
        return Reaped(node=node.name, lines=tuple(lines), ended=tuple(ended))

    @staticmethod
    def _end_helpers(session: NodeSession) -> list[str]:
        """End tipcflow commands whose controller has ended."""
        response = session.end_helpers()
        ended = ", ".join(f"{helper['helper']} (pid {helper['pid']})" for helper in response["helpers"])
        lines = [f"ended commands of dead controllers: {ended}"] if ended else []
        stayed = ", ".join(remaining_messages(response))
        return lines + ([f"cannot be ended: {stayed}"] if stayed else [])

    @staticmethod
    def _there(session: NodeSession, listed: dict[str, Any]) -> dict[str, set[JobId]]:
        """Return run -> its jobs on the node; empty for a run that only claims slots."""
        return {run: set[JobId]() for run in session.unclaim()} | jobs_by_run(listed)

    def _spared(self, node: Node, run: str) -> str:
        """Return why a run must not be ended, '' if it may be."""
        lease = next((lease for lease in self._leases(node) if lease.run == run and lease.live(self._now)), None)
        if lease is not None:
            return f"is running, leased until {clock(lease.expires_at)} by {lease.owner}; skipped"
        if self._run == run:
            return ""
        stored = self._store.runs.known([run]).get(run)
        if stored is None:
            return f"unknown to this database (other controller?); skipped (--run {run} ends it)"
        if self._ended_only and stored.status is None:
            return "has no status yet; skipped"
        return ""

    def _leases(self, node: Node) -> "list[Lease]":
        return [lease for lease in self._store.leases.all() if lease.node == node.address]

    @staticmethod
    def _end(session: NodeSession, run: str, jobs: list[JobId], by: StoppedBy) -> str:
        if not jobs:
            session.unclaim(run)
            return "has no jobs on this node; claim released"
        killed, left = 0, []
        for job in jobs:
            response = session.reap(job, by)
            killed += len(response["killed"])
            left += remaining_messages(response)
        session.unclaim(run)
        names = ", ".join(job.in_run for job in jobs)
        summary = f"ended {names} ({killed} processes killed)"
        return summary + (f"; still there: {', '.join(left)}" if left else "")

    def _drop(self, node: Node, there: set[str], elsewhere: set[str]) -> list[str]:
        """Drop the expired leases of runs that have nothing left there or in other workspaces of the host."""
        lines = []
        expired: dict[str, list[Lease]] = {}
        for lease in self._leases(node):
            is_abandoned = lease.run not in there and short(lease.run) not in elsewhere
            if is_abandoned and not lease.live(self._now) and self._run in ("", lease.run):
                expired.setdefault(lease.run, []).append(lease)
        for run, leases in expired.items():
            if self._store.leases.drop_expired(leases, self._now):
                slots = format_slots([(lease.node, lease.slot) for lease in leases], {node.address: ""}).strip()
                lines.append(f"run {run}: its expired lease on {slots} was dropped")
        return lines
