"""The data of a run that its processes read from the database: `tipcflow run`, or Airflow tasks on any worker."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument, ReferencesDocument, SuiteDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import Attempt, Cluster, InfraError, JobSpec, Plan, Status, Step, StepKind
from tipcflow.domain.run_documents import ClusterDocument, JudgementDocument, LeaseDocument
from tipcflow.execute.allocation import hold
from tipcflow.execute.attempt.budget import Budget, budget_of
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.attempt.retry import Retries
from tipcflow.execute.job.hang import hang_limit
from tipcflow.execute.job.member import Member
from tipcflow.execute.job.spec import job_spec, slots_needed
from tipcflow.execute.leases.claims import NodeClaims
from tipcflow.execute.leases.keeper import TASK_WAITER_S, LeaseKeeper
from tipcflow.execute.leases.messages import names_of
from tipcflow.execute.node.link import Connect
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.resolve.moves import groups_of, may_move, move_run
from tipcflow.execute.resolve.resolve import SETTLED, resolved_document, resolved_run
from tipcflow.execute.verdict import confirm

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.results.documents import LoadedDocuments

# The scheduler may be away for a while between two tasks of a run; the locks on the nodes have the last word.
LEASE_TTL_S = 1800.0
# Members of a gang wait for each other on their nodes, not in workers of a scheduler that may be busy.
BARRIER_S = 600.0


@dataclass(frozen=True)
class TaskContext:
    """One run, as seen by one of its processes.

    Attributes:
        connect: connects to nodes.
        report: receives events.
        barrier_s: how long a staged member of a gang waits for `go`.
    """

    run_id: str
    store: "Store"
    home: Path
    connect: Connect
    report: Listener
    barrier_s: float = BARRIER_S

    @cached_property
    def _settled(self) -> "LoadedDocuments":
        """The constant documents stored by `resolve`, read in one query."""
        return self.store.documents.several(self.run_id, SETTLED)

    @cached_property
    def request(self) -> RunRequest:
        """The request."""
        return resolved_document(self._settled, RequestDocument, self.run_id).root

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return self.store.plans.get(self.run_id)

    @cached_property
    def suite(self) -> Suite:
        """The suite as of the resolution of the run."""
        return resolved_document(self._settled, SuiteDocument, self.run_id).root

    @cached_property
    def policy(self) -> Policy:
        """The policy as of the resolution of the run."""
        return resolved_document(self._settled, PolicyDocument, self.run_id).root

    @cached_property
    def references(self) -> References:
        """The suite's accuracy targets as of the resolution of the run."""
        return resolved_document(self._settled, ReferencesDocument, self.run_id).root

    @property
    def budget(self) -> Budget:
        """The time budget of all steps of the run together."""
        return self._budget(self.store.attempts.of(self.run_id))

    def _budget(self, attempts: Sequence[Attempt]) -> Budget:
        return budget_of(self.request, self.suite, self.policy, attempts=attempts, leased_at=self._lease.at)

    @property
    def _lease(self) -> LeaseDocument:
        return self.store.documents.get(self.run_id, LeaseDocument) or LeaseDocument()

    @cached_property
    def _clock_began(self) -> float:
        return self.store.now() - time.monotonic()

    def now(self) -> float:
        """Return the time by the database's clock: tasks of one run may be on machines with different clocks."""
        return self._clock_began + time.monotonic()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as of the resolution of the run."""
        return resolved_document(self._settled, ClusterDocument, self.run_id).root

    @cached_property
    def closer(self) -> StepCloser:
        """Closes attempts."""
        return StepCloser(
            self.store,
            run=self.run_id,
            home=self.home,
            log_format=self.suite.log_format,
            rules=self.suite.predictions,
            report=self.report,
            retries=Retries(self.store, self.run_id, self.policy),
            left_s=lambda: self.budget.ends - self.now(),
        )

    def nodes(self, *names: str) -> Nodes:
        """Return the nodes of these names (default: all nodes of the plan); use as a context manager."""
        chosen = names or self.plan.nodes
        known = bool(self.store.nodes.facts(self.run_id))
        return Nodes(self.cluster, chosen, waits=self.policy.waits, connect=self.connect, reached_before=known)

    def spec(self, step: Step, node: str, attempt: int) -> JobSpec:
        """Return the job of a step on a node in an attempt: identical for every task."""
        fence = self._lease.fence
        spec = job_spec(
            self.plan,
            self._cut(step, attempt),
            self.cluster.node(node),
            run=self.run_id,
            attempt=attempt,
            fence=fence,
            hang_s=hang_limit(self.store, self.run_id, self.plan, self.policy)
            if step.kind is StepKind.TRAIN
            else 0.0,
            lease_s=self.policy.waits.node_lease_s,
            peers=[self.cluster.node(other).address for other in step.nodes if other != node],
            framework_probe=self.suite.probe and self.cluster.probe,
        )
        return spec.model_copy(update={"barrier_s": self.barrier_s}) if spec.barrier else spec

    def _cut(self, step: Step, attempt: int) -> Step:
        """Return the step with its deadline limited to the run's remaining budget; identical for every task."""
        attempts = self.store.attempts.of(self.run_id)
        began = _began(attempts, step, attempt)
        return step if began is None else self._budget(attempts).cut(step, began)

    def cut_short(self, step: Step, attempt: int) -> str:
        """Return the message that the run's budget ended an attempt before its own deadline; '' if it did not."""
        attempts = self.store.attempts.of(self.run_id)
        began = _began(attempts, step, attempt)
        return "" if began is None else self._budget(attempts).cut_short(step, began, self.now())

    def began(self, step: Step, attempt: int) -> float | None:
        """Return the start of an attempt by the database's clock; None if it is not open."""
        return _began(self.store.attempts.of(self.run_id), step, attempt)

    def members(self, step: Step, attempt: int, nodes: Nodes) -> dict[str, Member]:
        """Return node -> its member of an attempt, with its stored state."""
        known = self.store.members.of(self.run_id, step.id, attempt)
        made = {}
        for name in step.nodes:
            member = Member(
                nodes[name],
                self.spec(step, name, attempt),
                listener=self.report,
                reconnect_s=self.policy.waits.reconnect_s,
                silence_s=self.policy.waits.silence_s,
            )
            if name in known:
                member.restore(known[name])
            made[name] = member
        return made

    def forget(self, step: Step) -> None:
        """Reset the statuses of the run, the step and its dependents before the step is attempted again."""
        if self.store.runs.get(self.run_id).status is not None:
            self.store.documents.remove(self.run_id, JudgementDocument)
            confirm.drop_request(self.store, self.run_id)
            self.store.runs.reopen(self.run_id)
        self.store.steps.clear(self.run_id, [step.id, *self.plan.needing(step.id)])

    def statuses(self) -> dict[str, Status]:
        """Return step id -> status of the steps that have ended."""
        return {step: status for step, (status, _) in self.store.steps.statuses(self.run_id).items()}

    @property
    def slots(self) -> list[tuple[str, int]]:
        """Return (node address, slot) of all slots that the run leases; none of nodes that Slurm allocates."""
        if self.cluster.slurm is not None:
            return []
        return slots_needed(self.plan, self.cluster, whole_nodes=self.policy.whole_nodes)

    @cached_property
    def groups(self) -> list[list[str]]:
        """Return addresses of nodes of which the run may use any instead of another; none if they are fixed."""
        if self.cluster.slurm is not None or not may_move(self.store, self.run_id, self.request):
            return []
        return groups_of(self.store, self.cluster, self.plan)

    def choose_nodes(self) -> "TaskContext":
        """Join the queue, on other nodes if the nodes of the plan are in use; return the context with them."""
        if not (self.slots and self.groups):
            return self
        place = self.store.queue.join(
            self.run_id, self.slots, owner=self.request.owner, ttl_s=TASK_WAITER_S, groups=self.groups
        )
        if not place.moved:
            return self
        resolved = resolved_run(self.store, self.run_id, home=self.home)
        plan = move_run(self.store, self.run_id, resolved, place.moved)
        before = ", ".join(self.plan.nodes)
        self.note(f"{before}: in use or reserved; the run uses {', '.join(plan.nodes)} instead")
        return replace(self)

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
                self.run_id,
                slots,
                owner=self.request.owner,
                wait_s=0,
                empty=nodes.has_nothing_of,
                report=self.note,
                claims=NodeClaims(
                    self.store, nodes, self.run_id, slots, owner=self.request.owner, budget_s=self.budget.seconds
                ),
                ttl_s=LEASE_TTL_S,
                waiter_s=TASK_WAITER_S,
                names=names_of(self.cluster),
            )
            fence, held = keeper.try_once(queue=queue)
        if fence is None:
            return held
        self.keep_fence(fence)
        return ""

    def allocate(self) -> str:
        """Request the nodes of the run from Slurm without waiting; return what it waits for, '' if it has them.

        The cluster and the plan then have other nodes: read them in a new context.

        Raises:
            ConfigError, InfraError: the run gets no nodes.
        """
        resolved = resolved_run(self.store, self.run_id, home=self.home)
        held, why = hold.try_to_hold(self.store, self.run_id, resolved, self.plan, self.connect, note=self.note)
        if held is not None:
            self.keep_fence(held.fence)
        return why

    def keep_fence(self, fence: int) -> None:
        """Store the fence of the lease that the run has received now; the budget starts after it."""
        self.store.documents.put(self.run_id, LeaseDocument(fence=fence, at=self.now()))

    def keep_lease(self, seconds: float) -> None:
        """Renew the run's lease for at least `seconds`; acquire it again if it has expired.

        Raises:
            InfraError: another run has the slots.
        """
        if not self.slots:
            return
        if self.store.leases.renew(self.run_id, ttl_s=max(LEASE_TTL_S, seconds)):
            return
        held = self.acquire(queue=False)
        if held:
            raise InfraError(
                f"the run's lease has expired and the slots are taken: {held}",
                hint="clear the run from task `acquire`, which waits for free slots",
            )

    def note(self, text: str) -> None:
        """Emit a line about the run as a whole."""
        self.report(Event(Kind.NOTE, text))


def _began(attempts: Sequence[Attempt], step: Step, attempt: int) -> float | None:
    """Return the start of an attempt by the database's clock; None before it is open."""
    return next(
        (entry.started_at for entry in attempts if (entry.step, entry.attempt) == (step.id, attempt)), None
    )
