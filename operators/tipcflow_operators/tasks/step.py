"""Operator of a node's part of the steps of one kind: prepare, train, eval, export, infer_cpu, infer_gpu."""

import copy
import sys
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.ssh.hooks.ssh import SSHHook
from airflow.providers.ssh.operators.ssh import SSHOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, AirflowTaskTimeout

from tipcflow.domain import Node, Status, Step, StepKind, TipcflowError
from tipcflow.domain.keys import WaitKey
from tipcflow.domain.run_documents import WaitsDocument
from tipcflow.execute.attempt.decisions import SLACK_S, latest_end
from tipcflow.remote import paths
from tipcflow_operators.airflow.connect import connect, hook_of
from tipcflow_operators.airflow.internals import clears_of, tries_of
from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.airflow.tracing import trace_job
from tipcflow_operators.tasks.base import RunOperator
from tipcflow_operators.tasks.groups import before_on_its_slots, no_steps_reason, steps_of
from tipcflow_operators.triggers.cancelled import is_ended_by_user
from tipcflow_operators.triggers.job import JobPayload, JobTrigger
from tipcflow_operators.triggers.step import StepTrigger

if TYPE_CHECKING:
    from tipcflow.execute.run.context import TaskContext
    from tipcflow.execute.run.step import StepTask
    from tipcflow.transport import Transport

# A task stays on its worker for this long before it defers to the triggerer.
INLINE_S = 15.0
POLL_S = 0.5
# Arguments of SSHOperator that the plan or the connection decides.
_PLANNED = {
    *("banner_timeout", "cmd_timeout", "command", "conn_timeout", "environment"),
    *("get_pty", "remote_host", "skip_on_exit_code"),
}
# Airflow kills a task 5 s after SIGTERM.
KILL_S = 4.0
# How often a task polls the other nodes' jobs that it waits for.
PEERS_EVERY_S = 120.0


class _Round(NamedTuple):
    """The round of tasks that a task belongs to (`MemberState.of_round`)."""

    generation: int
    cleared: int


class StepOperator(RunOperator, SSHOperator):  # type: ignore[misc]  # `execute` returns nothing
    """Runs the steps of one kind and one group of variants on one node.

    Args:
        kind: kind of the steps.
        group, variants: select the variants (`tipcflow_operators.tasks.groups.steps_of`).
        node: node name of a task mapped over nodes; None for the step's first node.
        kwargs: `ssh_conn_id` or `ssh_hook` of the SSH provider's `SSHOperator` replaces the connection that the
            cluster file names for this node. The plan and the connection decide the rest, so the other arguments
            of `SSHOperator` are rejected (docs/adr/0016-step-operator-is-an-ssh-operator.md).

    Raises:
        ValueError: an argument of `SSHOperator` that the plan or the connection decides, or a hook without a
            connection ID, by which the triggerer connects.
    """

    template_fields = ("node", "ssh_conn_id")

    def __init__(
        self, *, kind: str, group: int = 0, variants: Sequence[str] = (), node: str | None = None, **kwargs: Any
    ) -> None:
        if planned := sorted(_PLANNED & kwargs.keys()):
            raise ValueError(f"{', '.join(planned)}: the plan and the connection decide this; remove the argument")
        if (hook := kwargs.get("ssh_hook")) is not None and not hook.ssh_conn_id:
            raise ValueError("ssh_hook has no ssh_conn_id; the triggerer connects by the connection's id")
        super().__init__(**kwargs)
        self.kind = kind
        self.group = group
        self.variants = tuple(variants)
        self.node = node
        self._has_own_connection = bool(kwargs.get("ssh_conn_id") or hook)
        self._own_node = node or ""
        self._instance: Any = None
        self._task: StepTask | None = None
        self._killed = False

    def work(self, ctx: "TaskContext", context: Context) -> None:
        """Run the steps from the first one."""
        self._instance = context["ti"]
        steps = self._steps(ctx)
        if not steps:
            raise AirflowSkipException(
                no_steps_reason(ctx.plan, StepKind(self.kind), self.group, self.variants, self.node)
            )
        self._do(ctx, context, steps, None)

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Continue after a job that the triggerer watched has ended."""
        self._instance = context["ti"]
        resumed = JobPayload.of(event)
        with self.opened(context) as ctx:
            steps = self._steps(ctx)
            at = [step.id for step in steps].index(resumed.step)
            self._do(ctx, context, steps[at:], resumed)

    @cached_property
    def ssh_hook(self) -> SSHHook:
        """Return the hook for this task's node, with keepalive and host key verification.

        Raises:
            InfraError: the connection does not exist or disables host key verification.
        """
        return hook_of(self.ssh_conn_id or "", self.node or self.task_id)

    def get_hook(self) -> SSHHook:
        """The hook for this task's node."""
        return self.ssh_hook

    def connect(self, node: Node) -> "Transport":
        """Connect to a node: to this task's own node by its hook, to peers by the cluster file."""
        if node.name == self._own_node and not self._has_own_connection:
            self.ssh_conn_id = node.connection
        if not self._has_own_connection or node.name != self._own_node:
            return connect(node)
        # SSHHook.get_conn returns a client that is still open; each transport closes its own.
        hook = copy.copy(self.get_hook())
        hook.client = None
        return connect(node, hook)

    def on_kill(self) -> None:
        """Stop all members of the attempt if a user marked or cleared the task.

        Airflow also calls this when the task exceeded its `execution_timeout` and when its worker is lost or shut
        down (`is_ended_by_user`): then its jobs keep running, and the retried task finds them.
        """
        if isinstance(sys.exception(), AirflowTaskTimeout):
            return
        # In a thread: an unresponsive node must not block this call. The task `release` checks again.
        stopping = threading.Thread(target=self._stop_for_user, daemon=True)
        stopping.start()
        stopping.join(KILL_S)

    def _stop_for_user(self) -> None:
        if self._instance is None or not is_ended_by_user(self._instance, self.log):
            return
        self._killed = True
        if self._task is not None:
            self._task.stop("stopped from Airflow")

    def _steps(self, ctx: "TaskContext") -> list[Step]:
        self._name_allocated(ctx)
        steps = steps_of(ctx.plan, StepKind(self.kind), self.group, self.variants)
        own_steps = [step for step in steps if self.node is None or self.node in step.nodes]
        if own_steps and not self._own_node:
            self._own_node = own_steps[0].nodes[0]
        return own_steps

    def _name_allocated(self, ctx: "TaskContext") -> None:
        """Take the name of the run's node: the task is mapped over the nodes of the first plan."""
        if self._mapped_node is None:
            return
        from tipcflow.execute.allocation.document import AllocationDocument
        from tipcflow.execute.resolve.moved import MovedDocument

        documents = ctx.store.documents.several(ctx.run_id, (MovedDocument, AllocationDocument))
        planned = documents.get(AllocationDocument) or documents.get(MovedDocument)
        if planned is None:
            return
        self.node = planned.node(self._mapped_node, ctx.plan.nodes)
        # A connection of this operator is that of the node it was mapped over, or of Slurm's login node.
        if ctx.cluster.slurm is not None or not self._has_own_connection:
            self._own_node = self.node

    @cached_property
    def _mapped_node(self) -> str | None:
        """The node that Airflow has mapped the task over; read before `node` changes."""
        return self.node

    def _do(
        self,
        ctx: "TaskContext",
        context: Context,
        steps: list[Step],
        resumed: JobPayload | None,
    ) -> None:
        # Airflow increases both when a task is cleared and keeps both when a task is retried. The first belongs to
        # the task (mapped tasks of one gang have different values), the second to the DAG run.
        turn = _Round(tries_of(context["ti"]) + 1, clears_of(context["dag_run"]))
        # Steps before the resumed one have ended in an earlier process of this task.
        before = [step.id for step in self._steps(ctx) if step not in steps]
        statuses = ctx.store.steps.statuses(ctx.run_id) if before else {}
        ended = [statuses[step] for step in before if step in statuses]
        for step in steps:
            ended.append(self._run_step(ctx, context, step, resumed, turn))
            resumed = None
            self._await_closed(ctx, step)
        bad = [end for end in ended if end[0] not in (Status.PASS, Status.NOT_RUN, Status.BLOCKED)]
        if bad:
            status, reason = max(bad, key=lambda end: end[0].severity)
            raise AirflowFailException(f"{status.value}: {reason}")
        if all(status is not Status.PASS for status, _ in ended):
            status, reason = ended[-1]
            raise AirflowSkipException(f"{status.value}: {reason}")

    def _run_step(
        self,
        ctx: "TaskContext",
        context: Context,
        step: Step,
        resumed: JobPayload | None,
        turn: "_Round",
    ) -> tuple[Status, str]:
        from tipcflow.execute.failure.dependencies import blocking_status
        from tipcflow.execute.run.phases import record_own_failure
        from tipcflow.execute.run.step import StepTask

        node = self.node or step.nodes[0]
        name_fields(ctx.run_id, step.id, node)
        with ctx.nodes(*step.nodes) as nodes:
            if blocking_status(step, dict.fromkeys(step.after, Status.PASS)) is None:
                nodes[node].connect_ahead()  # concurrently with the database query
            if not ctx.store.members.is_under_way(ctx.run_id, step.id, node=node, **turn._asdict()):
                left_out = self._why_not(ctx, context, step)
                if left_out is not None:
                    ctx.closer.leave_out(step, *left_out)
                    return left_out
                self._wait_for_slots(ctx, step, turn.generation)
            try:
                resume, deferred = (resumed.resume, resumed.attempt) if resumed else (None, 0)
                self._task = StepTask(
                    ctx, step, (node,), nodes, resume=resume, deferred=deferred, **turn._asdict()
                )
                if self._killed:
                    self._task.kill()
                return self._attempts(ctx, step, self._task, resumed)
            except TipcflowError:
                raise
            except Exception as error:
                record_own_failure(ctx, step.id, error)
                raise
            finally:
                self._task = None

    def _attempts(
        self, ctx: "TaskContext", step: Step, task: "StepTask", resumed: JobPayload | None
    ) -> tuple[Status, str]:
        """Run this node's part, with the step's retries.

        Args:
            resumed: payload of the trigger that resumed the task; None if the task was not deferred.
        """
        while True:
            task.begin(INLINE_S)
            if resumed and resumed.stalled and resumed.attempt == task.attempt:
                task.own_member.end_if_stalled(resumed.stalled)
            if not task.watch(INLINE_S):
                self._defer(ctx, step, task)
            if not task.await_peers(INLINE_S):
                self._wait_for_peers(ctx, step, task)
            outcome = task.end()
            if (record := task.own_member.record) is not None:
                trace_job(record, task.attempt, *outcome)
            if not task.try_again():
                return outcome
            ctx.keep_lease(step.deadline_s + SLACK_S)

    def _why_not(self, ctx: "TaskContext", context: Context, step: Step) -> tuple[Status, str] | None:
        """Return why a step without an attempt must not start; None if it may start, with a lease.

        Raises:
            AirflowFailException: the task was cleared without its downstream tasks up to `verdict`.
        """
        from tipcflow.execute.run.phases import ended_before_it_began, refuse_step, settle_needs

        if ctx.store.runs.get(ctx.run_id).status is not None:
            if (early := ended_before_it_began(ctx)) is not None:
                return early
            refuse_without_verdict(ctx, context)
        settle_needs(ctx, step)
        return refuse_step(ctx, step, lease=lambda: ctx.keep_lease(step.deadline_s + SLACK_S))

    def _await_closed(self, ctx: "TaskContext", step: Step) -> None:
        """Wait until the other nodes have ended the step too: this task's next step needs the same slots."""
        if step.id == self._steps(ctx)[-1].id:
            return
        deadline = time.monotonic() + step.deadline_s + SLACK_S
        while ctx.store.attempts.open_number(ctx.run_id, step.id) is not None and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def _wait_for_slots(self, ctx: "TaskContext", step: Step, generation: int) -> None:
        """Wait until the CPU inference on the same slots has ended; defer if that takes longer."""
        first = before_on_its_slots(ctx.plan, step)
        if first is None or ctx.store.attempts.open_number(ctx.run_id, step.id) is not None:
            return
        begun = time.monotonic()
        key = WaitKey(step.id, generation)
        waits = ctx.store.documents.get(ctx.run_id, WaitsDocument) or WaitsDocument()
        deadline = waits.root.get(key, 0.0)
        if not deadline:
            deadline = ctx.now() + first.deadline_s + SLACK_S
            ctx.store.documents.merge(ctx.run_id, WaitsDocument, {key: deadline})
            ctx.note(f"{step.id} waits for {first.id}, which uses the same slots")
        while first.id not in ctx.statuses() and ctx.now() < deadline:
            if time.monotonic() - begun > INLINE_S:
                trigger = StepTrigger(run=ctx.run_id, step=step.id, awaited=first.id, until=deadline)
                self.defer(trigger=trigger, method_name="resume")
            time.sleep(POLL_S)

    def _wait_for_peers(self, ctx: "TaskContext", step: Step, task: "StepTask") -> None:
        """Defer until the other nodes' parts have ended, and poll them, because their tasks may be dead. Continue
        after the step's deadline in any case."""
        left_s = task.must_end_by - ctx.now()
        if left_s < 0:
            return
        ctx.note(f"{step.id} has ended on node {task.own_member.name} and is still running on other nodes")
        until = ctx.now() + min(left_s, PEERS_EVERY_S)
        self.defer(
            trigger=StepTrigger(run=ctx.run_id, step=step.id, awaited=step.id, until=until), method_name="resume"
        )

    def _reached_by(self, node: Node) -> Node:
        """The node with the connection that the triggerer is to use."""
        if not self._has_own_connection or node.name != self._own_node:
            return node
        return node.model_copy(update={"connection": self.get_hook().ssh_conn_id})

    def _defer(self, ctx: "TaskContext", step: Step, task: "StepTask") -> None:
        spec = task.own_member.spec
        peers = [
            [
                self._reached_by(ctx.cluster.node(peer.node)).model_dump(mode="json"),
                _job(ctx, peer.node, step, task.attempt),
            ]
            for peer in task.specs
        ]
        trigger = JobTrigger(
            run=ctx.run_id,
            step=step.id,
            node=self._reached_by(ctx.cluster.node(spec.node)).model_dump(mode="json"),
            job=_job(ctx, spec.node, step, task.attempt),
            peers=peers,
            resume=task.own_member.log_bytes,
            until=latest_end(spec, ctx.now()),
            lost_after_s=ctx.policy.waits.reconnect_s,
            silence_s=ctx.policy.waits.silence_s,
            peers_every_s=ctx.policy.waits.peers_every_s,
            hung=task.own_member.hangs,
            hang_number=task.own_member.hang_number,
            attempt=task.attempt,
        )
        ctx.note(f"{step.id} is running on node {spec.node}; deferring to the triggerer")
        self.defer(trigger=trigger, method_name="resume")


def refuse_without_verdict(ctx: "TaskContext", context: Context) -> None:
    """Refuse to repeat a step of a judged run unless its verdict is repeated too.

    Raises:
        AirflowFailException: task `verdict` has ended and was not cleared.
    """
    if ctx.store.runs.get(ctx.run_id).status is None:
        return
    dag_run = context["dag_run"]
    states = (
        context["ti"]
        .get_task_states(dag_id=dag_run.dag_id, task_ids=["verdict"], run_ids=[dag_run.run_id])
        .get(dag_run.run_id, {})
    )
    if states.get("verdict") in ("success", "failed"):
        raise AirflowFailException(
            "this run has a verdict: clear the task with its downstream tasks, up to `verdict`"
        )


def _job(ctx: "TaskContext", node: str, step: Step, attempt: int) -> str:
    return paths.job_dir(ctx.cluster.node(node), ctx.run_id, step.id, attempt)
