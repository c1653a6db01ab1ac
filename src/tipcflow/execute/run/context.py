"""What a task of a run needs, read from the database: a task is a process of its own, maybe on another worker."""

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

# Between two tasks of a run the scheduler may be away for a while; the nodes' own locks have the last word.
LEASE_TTL_S = 1800.0
# A gang's members wait for each other on their nodes, not in the workers of a scheduler that may be busy.
BARRIER_S = 600.0
_SETTLED = ("request", "suite", "policy", "references", "cluster")


@dataclass(frozen=True)
class TaskContext:
    """One run, as one of its tasks sees it.

    Attributes:
        connect: how nodes are reached.
        say: gets what happens: the task's log and the run's events.
    """

    run: str
    store: "Store"
    home: Path
    connect: Connect
    say: Listener

    @cached_property
    def _settled(self) -> dict[str, Any]:
        """What `resolve` has kept, and never changes: read at once."""
        return self.store.several_documents(self.run, _SETTLED)

    @cached_property
    def request(self) -> RunRequest:
        """What was asked for."""
        return request_from(self._settled.get("request"), self.run)

    @cached_property
    def plan(self) -> Plan:
        """What is done."""
        return self.store.plan(self.run)

    @cached_property
    def suite(self) -> Suite:
        """The suite as it was when the run was resolved."""
        return Suite.model_validate(self._settled.get("suite"))

    @cached_property
    def policy(self) -> Policy:
        """The policy as it was when the run was resolved."""
        return Policy.model_validate(self._settled.get("policy"))

    @cached_property
    def references(self) -> References:
        """The suite's accuracy targets as they were when the run was resolved."""
        return References.model_validate(self._settled.get("references"))

    @property
    def budget_s(self) -> float:
        """What all steps of the run together may take, seconds."""
        if self.request.confirms:
            return self.policy.confirm_minutes * 60
        return (self.suite.budget_minutes or self.policy.budget_minutes) * 60

    @property
    def budget_ends(self) -> float:
        """When the run's budget is used up, seconds since the epoch; inf while nothing was tried.

        It counts from the first attempt under the present lease: neither waiting for slots nor a night of trouble
        with nodes, after which somebody clears the run, is the chain's fault. A confirm run has its own end.
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
        """The time by the database's clock: tasks of one run may be on machines whose clocks differ."""
        return self._clock_began + time.monotonic()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as it was when the run was resolved."""
        return Cluster.model_validate(self._settled.get("cluster"))

    @cached_property
    def closer(self) -> StepCloser:
        """Who ends attempts."""
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
        """The nodes of these names (of the plan, without one); use as a context manager."""
        chosen = names or self.plan.nodes
        known = bool(self.store.node_facts(self.run))
        return Nodes(self.cluster, chosen, waits=self.policy.waits, connect=self.connect, reached_before=known)

    def spec(self, step: Step, node: str, attempt: int) -> JobSpec:
        """The job of a step on a node in an attempt: the same whichever task asks."""
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
        """The step with no more time than is left of the run's budget; the same whichever task asks."""
        attempts = self.store.attempts(self.run)
        mine = [one for one in attempts if (one.step, one.attempt) == (step.id, attempt)]
        left = self._budget_ends(attempts) - mine[0].started_at if mine else step.deadline_s
        return step.model_copy(update={"deadline_s": max(1.0, left)}) if left < step.deadline_s else step

    def cut_short(self, step: Step, attempt: int) -> str:
        """In words, that the run's budget ended an attempt before its own deadline; '' when it did not."""
        cut = self._cut(step, attempt).deadline_s < step.deadline_s
        return budget_words(self.budget_s) if cut and self.now() >= self.budget_ends else ""

    def members(self, step: Step, attempt: int, nodes: Nodes) -> dict[str, Member]:
        """Node -> its member of an attempt, with what is known of it."""
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
        """A step is tried (again): what was said of the run, and of what needs the step, is no longer true."""
        if self.store.get_run(self.run).status is not None:
            self.store.put_document(self.run, "judgement", None)
            confirm.forget(self.store, self.run)
            self.store.reopen_run(self.run)
        self.store.clear_steps(self.run, [step.id, *self.plan.needing(step.id)])

    def statuses(self) -> dict[str, Status]:
        """Step id -> status of the steps that have ended."""
        return {step: status for step, (status, _) in self.store.step_statuses(self.run).items()}

    @property
    def slots(self) -> list[tuple[str, int]]:
        """(node address, slot) of all that the run leases."""
        return slots_needed(self.plan, self.cluster, whole_nodes=self.policy.whole_nodes)

    def acquire(self, *, queue: bool = True) -> str:
        """Lease all slots of the run, all or none, without waiting; what stands in the way, '' when it has them.

        Args:
            queue: stay in the queue when they cannot be had now, for as long as somebody asks again in time.

        Raises:
            InfraError: a node whose lease has run out cannot be listed.
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
        """Renew the run's lease for at least so many seconds; acquire it again when it has run out.

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
                f"the run's lease has run out and the slots are taken: {held}",
                hint="clear the run from `acquire` on, which waits for free slots",
            )

    def note(self, text: str) -> None:
        """Say a line about the run as a whole."""
        self.say(Event(Kind.NOTE, text))
