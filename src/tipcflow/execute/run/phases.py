"""The phases of a run around its steps, each as its own task. Collect, release, judge and verdict run after any
failure, and the run gets a status."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Plan, Run, Status, Step, TipcflowError
from tipcflow.execute.attempt.steps import budget_words
from tipcflow.execute.failure.dependencies import why_not
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import create_run, resolve, resolved_run
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.run.deploy import deploy
from tipcflow.execute.run.inspection import inspect, settle
from tipcflow.execute.run.step import StepTask
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict import judge as judgement

if TYPE_CHECKING:
    from tipcflow.store import Store


def open_run(store: "Store", run_id: str, request: RunRequest) -> bool:
    """Create the run's row, or reopen it after its tasks were cleared; return whether it is new."""
    try:
        store.get_run(run_id)
    except TipcflowError:
        create_run(store, request, run_id)
        return True
    begin_again(store, run_id)
    return False


def begin_again(store: "Store", run_id: str) -> None:
    """Reset the statuses of a run and its steps: its first tasks run again, and all tasks after them."""
    store.put_document(run_id, "judgement", None)
    confirm.forget(store, run_id)
    if store.get_run(run_id).status is not None:
        store.reopen_run(run_id)
    plan = store.plan_or_none(run_id)
    if plan is not None:
        store.clear_steps(run_id, [step.id for step in plan.steps])


def resolve_run(store: "Store", run_id: str, request: RunRequest, *, home: Path) -> Plan:
    """Read and check everything, and store the plan. A run that has started keeps its plan.

    Raises:
        ConfigError, InfraError: the run has its status and reason.
    """
    open_run(store, run_id, request)
    if store.attempts(run_id):
        return store.plan(run_id)
    try:
        _, plan = resolve(store, request, run_id, home=home)
    except TipcflowError as error:
        store.finish_run(run_id, error.status, str(error), time.time())
        raise
    return plan


def cancel_unresolved(store: "Store", run_id: str, request: RunRequest) -> None:
    """Store a run that a user stopped before its first task: waiting clients find it `cancelled`."""
    create_run(store, request, run_id)
    store.finish_run(run_id, Status.CANCELLED, "stopped by a user before its first task", time.time())


def prepare_nodes(context: TaskContext) -> Plan:
    """After the lease: check the nodes, settle the plan, install the suite's code.

    Raises:
        InfraError: a node is not usable; the run has its status and reason.
    """
    store, run = context.store, context.run
    try:
        with context.nodes() as nodes:
            context.note(f"connecting to {', '.join(context.plan.nodes)}")
            nodes.connect()
            resolved = resolved_run(store, run, home=context.home)
            plan = context.plan
            if not store.attempts(run):
                facts = inspect(store, run, resolved, nodes, context.note)
                plan = settle(store, run, resolved, facts, nodes)
            deploy(store, run, resolved, plan, nodes)
        return plan
    except TipcflowError as error:
        context.closer.keep_before(store, run, error)
        store.finish_run(run, error.status, str(error), time.time())
        raise


def collect_run(context: TaskContext, *, stopped: bool = True) -> list[str]:
    """Give every step a status: close orphaned attempts, and record why steps were not started.

    Args:
        stopped: whether a user stopped the run; otherwise a step without an attempt is an infra_failure.

    Returns:
        messages about the closed attempts and steps.
    """
    said: list[str] = []
    store, run = context.store, context.run
    plan = store.plan_or_none(run)
    if plan is None:
        return ["the run ended before it had a plan: nothing to collect"]
    for step in plan.steps:
        if store.open_attempt_number(run, step.id) is not None:
            with context.nodes(*step.nodes) as nodes:
                settled = StepTask(context, step, step.nodes[0], nodes).settle(stopped=stopped)
            if settled is not None:
                status, reason = settled
                said.append(f"{step.id}: closed as {status.value}{f': {reason}' if reason else ''}")
        statuses = context.statuses()
        if step.id in statuses:
            continue
        never = (
            (Status.CANCELLED, "not started: the run was stopped before this step")
            if stopped
            else (
                Status.INFRA_FAILURE,
                "not started: an upstream task died without reporting; see its log",
            )
        )
        status, reason = why_not(step, statuses) or never
        context.closer.leave_out(step, status, reason)
        said.append(f"{step.id}: {status.value}: {reason}")
    return said


def collect_if_missing(context: TaskContext, *, stopped: Callable[[], bool]) -> list[str]:
    """Collect for a task `collect` that died: a step without a status would be counted against the model.

    Args:
        stopped: whether a user stopped the run.
    """
    plan = context.store.plan_or_none(context.run)
    statuses = context.statuses() if plan is not None else {}
    if plan is None or all(step.id in statuses for step in plan.steps):
        return []
    return collect_run(context, stopped=stopped())


def release_run(context: TaskContext) -> list[str]:
    """List every node, end what is left of the run there, release the slots; return messages about leftovers."""
    store, run = context.store, context.run
    leftovers: list[str] = []
    unlisted: set[str] = set()
    try:
        if store.plan_or_none(run) is not None and store.node_facts(run):
            with context.nodes() as nodes:
                nodes.connect_what_can_be()
                leftovers = nodes.clean(run)
            unlisted = nodes.may_hold(store.attempts(run))
        elif store.document(run, "lease") is not None:
            with context.nodes() as nodes:  # no job was started there, but slots were claimed
                nodes.each_that_answers(lambda session: session.unclaim(run))
    finally:
        store.release_leases(run, keep=unlisted)
    store.put_document(run, "leftovers", leftovers)
    return leftovers


def judge_run(context: TaskContext) -> tuple[Status, str]:
    """Run every check; return the run's status and reason. A run that ended before its start keeps its status."""
    store, run = context.store, context.run
    known = store.get_run(run)
    if known.status is not None and store.document(run, "judgement") is None:
        return known.status, known.reason
    judged = judgement.judge_run(store, run, rules=context.policy, references=context.references)
    status, reason = judged.status, judged.reason
    if status is Status.CANCELLED:
        stopped = [step for step, word in context.statuses().items() if word is Status.CANCELLED]
        reason = f"stopped by a user{f' in {stopped[0]}' if stopped else ''}"
    leftovers = store.document(run, "leftovers") or []
    if leftovers and status.severity < Status.INFRA_FAILURE.severity:
        status, reason = Status.INFRA_FAILURE, leftovers[0]
    store.put_document(run, "judgement", {"status": status.value, "reason": reason})
    return status, reason


def finish_run(context: TaskContext) -> Run:
    """Store the run's verdict and write its certificate.

    A run that could not be judged is an `infra_failure`: every run gets a status.
    """
    store, run = context.store, context.run
    judged = store.document(run, "judgement")
    known = store.get_run(run)
    if known.status is not None and judged is None:
        return known
    if judged is None:
        status, reason = Status.INFRA_FAILURE, "the run could not be judged: see the log of task `judge`"
    else:
        status, reason = Status(judged["status"]), judged["reason"]
    store.finish_run(run, status, reason, time.time())
    if judged is not None:
        judgement.write_certificate(store, run, context.home)
    return store.get_run(run)


def failed_by_us(context: TaskContext, step_id: str, error: BaseException) -> None:
    """Store a defect of tipcflow in a step's task as the step's status, unless it has one."""
    if step_id and step_id not in context.statuses():
        context.store.set_step(
            context.run, step_id, Status.INFRA_FAILURE, f"tipcflow itself failed: {error!r}; see the task's log"
        )


def settle_needs(context: TaskContext, step: Step) -> None:
    """Close the steps that a step needs and whose tasks have all died."""
    for need in step.after:
        if context.store.open_attempt_number(context.run, need) is not None:
            if context.plan.step(need).kind is step.kind:
                continue  # tasks of its other nodes are running
            needed = context.plan.step(need)
            with context.nodes(*needed.nodes) as nodes:
                StepTask(context, needed, needed.nodes[0], nodes).settle(stopped=False)


def over_budget(context: TaskContext) -> tuple[Status, str] | None:
    """Return (status, reason) of a step that starts after the end of the run's budget or of a confirmation's
    deadline; None while there is time left."""
    confirms = context.request.confirms
    if confirms and not confirm.open_question(context.store, confirms):
        return Status.CANCELLED, f"not started: run {confirms} no longer waits for this confirmation run"
    if context.now() > context.budget_ends:
        return Status.INFRA_FAILURE, f"not started: {budget_words(context.budget_s)}"
    return None


def ended_before_it_began(context: TaskContext) -> tuple[Status, str] | None:
    """Return (status, reason) of a step of a run that has a status and no attempts; None for others."""
    run = context.store.get_run(context.run)
    if run.status is not None and not context.store.attempts(context.run):
        return Status.BLOCKED, f"not started: the run is {run.status.value}"
    return None
