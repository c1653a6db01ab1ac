"""The data of a run that its tasks read from the database; tasks are processes on any worker."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Suite
from tipcflow.domain import Attempt, Cluster, InfraError, JobSpec, Plan, Status, Step, StepKind
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.attempt.retry import Retries
from tipcflow.execute.attempt.steps import budget_words
from tipcflow.execute.job.hang import hang_limit
from tipcflow.execute.job.member import Member
from tipcflow.execute.job.spec import job_spec, slots_needed
from tipcflow.execute.leases.claims import NodeClaims
from tipcflow.execute.leases.keeper import TASK_WAITER_S, LeaseKeeper
from tipcflow.execute.leases.messages import names_of
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.node.session import Connect
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import request_from
from tipcflow.execute.verdict import confirm

if TYPE_CHECKING:
    from tipcflow.store import Store

# The scheduler may be away for a while between two tasks of a run; the locks on the nodes have the last word.
LEASE_TTL_S = 1800.0
# Members of a gang wait for each other on their nodes, not in workers of a scheduler that may be busy.
BARRIER_S = 600.0
_SETTLED = ("request", "suite", "policy", "references", "cluster")


@dataclass(frozen=True)
class TaskContext:
    """One run, as seen by one of its tasks.

    Attributes:
        connect: connects to nodes.
        say: receives events: the task's log and the run's events.
    """

    run: str
    store: "Store"
    home: Path
    connect: Connect
    say: Listener

    @cached_property
    def _settled(self) -> dict[str, Any]:
        """The constant documents stored by `resolve`, read in one query."""
        return self.store.several_documents(self.run, _SETTLED)

    @cached_property
    def request(self) -> RunRequest:
        """The request."""
        return request_from(self._settled.get("request"), self.run)

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return self.store.plan(self.run)

    @cached_property
    def suite(self) -> Suite:
        """The suite as of the resolution of the run."""
        return Suite.model_validate(self._settled.get("suite"))

    @cached_property
    def policy(self) -> Policy:
        """The policy as of the resolution of the run."""
        return Policy.model_validate(self._settled.get("policy"))

    @cached_property
    def references(self) -> References:
        """The suite's accuracy targets as of the resolution of the run."""
        return References.model_validate(self._settled.get("references"))

    @property
    def budget_s(self) -> float:
        """The time budget of all steps of the run together, seconds."""
        if self.request.confirms:
            return self.policy.confirm_minutes * 60
        return (self.suite.budget_minutes or self.policy.budget_minutes) * 60

    @property
    def budget_ends(self) -> float:
        """End of the run's budget, seconds since the epoch; inf before the first attempt.

        The budget starts with the first attempt under the present lease: neither the wait for slots nor a node
            failure after which a user clears the run counts. A confirmation run has its own deadline.
        """
        return self._budget_ends(self.store.attempts(self.run))

    def _budget_ends(self, attempts: Sequence[Attempt]) -> float:
        leased = float((self.store.document(self.run, "lease") or {}).get("at", 0.0))
        began = [one.started_at for one in attempts if one.started_at >= leased]
        if self.request.ends_at:
            return self.request.ends_at
        return min(began) + self.budget_s if began else float("inf")

    @cached_property
    def _clock_began(self) -> float:
        return self.store.now() - time.monotonic()

    def now(self) -> float:
        """Return the time by the database's clock: tasks of one run may be on machines with different clocks."""
        return self._clock_began + time.monotonic()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as of the resolution of the run."""
        return Cluster.model_validate(self._settled.get("cluster"))

    @cached_property
    def closer(self) -> StepCloser:
        """Closes attempts."""
        return StepCloser(
            self.store,
            run=self.run,
            home=self.home,
            log_format=self.suite.log_format,
            say=self.say,
            retries=Retries(self.store, self.run, self.policy),
            left_s=lambda: self.budget_ends - self.now(),
        )

    def nodes(self, *names: str) -> Nodes:
        """Return the nodes of these names (default: all nodes of the plan); use as a context manager."""
        chosen = names or self.plan.nodes
        known = bool(self.store.node_facts(self.run))
        return Nodes(self.cluster, chosen, waits=self.policy.waits, connect=self.connect, reached_before=known)

    def spec(self, step: Step, node: str, attempt: int) -> JobSpec:
        """Return the job of a step on a node in an attempt: identical for every task."""
        fence = int((self.store.document(self.run, "lease") or {}).get("fence", 0))
        spec = job_spec(
            self.plan,
            self._cut(step, attempt),
            self.cluster.node(node),
            run=self.run,
            attempt=attempt,
            fence=fence,
            hang_s=hang_limit(self.store, self.run, self.plan, self.policy)
            if step.kind is StepKind.TRAIN
            else 0.0,
            lease_s=self.policy.waits.node_lease_s,
        )
        return spec.model_copy(update={"barrier_s": BARRIER_S}) if spec.barrier else spec

    def _cut(self, step: Step, attempt: int) -> Step:
        """Return the step with its deadline limited to the run's remaining budget; identical for every task."""
        attempts = self.store.attempts(self.run)
        mine = [one for one in attempts if (one.step, one.attempt) == (step.id, attempt)]
        left = self._budget_ends(attempts) - mine[0].started_at if mine else step.deadline_s
        return step.model_copy(update={"deadline_s": max(1.0, left)}) if left < step.deadline_s else step

    def cut_short(self, step: Step, attempt: int) -> str:
        """Return the message that the run's budget ended an attempt before its own deadline; '' if it did not."""
        cut = self._cut(step, attempt).deadline_s < step.deadline_s
        return budget_words(self.budget_s) if cut and self.now() >= self.budget_ends else ""

    def members(self, step: Step, attempt: int, nodes: Nodes) -> dict[str, Member]:
        """Return node -> its member of an attempt, with its stored state."""
        known = self.store.members(self.run, step.id, attempt)
        made = {}
        for name in step.nodes:
            member = Member(
                nodes[name],
                self.spec(step, name, attempt),
                listener=self.say,
                reconnect_s=self.policy.waits.reconnect_s,
                silence_s=self.policy.waits.silence_s,
            )
            if name in known:
                member.restore(known[name])
            made[name] = member
        return made

    def forget(self, step: Step) -> None:
        """Reset the statuses of the run, the step and its dependents before the step is attempted again."""
        if self.store.get_run(self.run).status is not None:
            self.store.put_document(self.run, "judgement", None)
            confirm.forget(self.store, self.run)
            self.store.reopen_run(self.run)
        self.store.clear_steps(self.run, [step.id, *self.plan.needing(step.id)])

    def statuses(self) -> dict[str, Status]:
        """Return step id -> status of the steps that have ended."""
        return {step: status for step, (status, _) in self.store.step_statuses(self.run).items()}

    @property
    def slots(self) -> list[tuple[str, int]]:
        """Return (node address, slot) of all slots that the run leases."""
        return slots_needed(self.plan, self.cluster, whole_nodes=self.policy.whole_nodes)

    def acquire(self, *, queue: bool = True) -> str:
        """Lease all slots of the run, all or none, without waiting; return what blocks it, '' if it has them.

        Args:
            queue: stay in the queue if the slots are not available now, as long as the request is renewed in time.

        Raises:
            InfraError: a node with an expired lease cannot be listed.
        """
        slots = self.slots
        if not slots:
            return ""
        with self.nodes() as nodes:
            keeper = LeaseKeeper(
                self.store,
                self.run,
                slots,
                owner=self.request.owner,
                wait_s=0,
                empty=nodes.holds_nothing_of,
                say=self.note,
                claims=NodeClaims(
                    self.store, nodes, self.run, slots, owner=self.request.owner, budget_s=self.budget_s
                ),
                ttl_s=LEASE_TTL_S,
                waiter_s=TASK_WAITER_S,
                names=names_of(self.cluster),
            )
            fence, held = keeper.try_once(queue=queue)
        if fence is None:
            return held
        self.store.put_document(self.run, "lease", {"fence": fence, "at": self.now()})
        return ""

    def keep_lease(self, seconds: float) -> None:
        """Renew the run's lease for at least `seconds`; acquire it again if it has expired.

        Raises:
            InfraError: another run has the slots.
        """
        if not self.slots:
            return
        if self.store.renew_leases(self.run, ttl_s=max(LEASE_TTL_S, seconds)):
            return
        held = self.acquire(queue=False)
        if held:
            raise InfraError(
                f"the run's lease has expired and the slots are taken: {held}",
                hint="clear the run from task `acquire`, which waits for free slots",
            )

    def note(self, text: str) -> None:
        """Emit a line about the run as a whole."""
        self.say(Event(Kind.NOTE, text))
