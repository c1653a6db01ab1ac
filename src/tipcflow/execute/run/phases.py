"""The phases of a run around its steps, each as a task of its own. Whatever happened before, collect, release,
judge and verdict do their part, and the run gets a status."""

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
    """Make the run's row, or open it again when its tasks were cleared; whether it is new."""
    try:
        store.get_run(run_id)
    except TipcflowError:
        create_run(store, request, run_id)
        return True
    begin_again(store, run_id)
    return False


def begin_again(store: "Store", run_id: str) -> None:
    """Take back what was said of a run and its steps: its first tasks run again, and everything after them."""
    store.put_document(run_id, "judgement", None)
    confirm.forget(store, run_id)
    if store.get_run(run_id).status is not None:
        store.reopen_run(run_id)
    plan = store.plan_or_none(run_id)
    if plan is not None:
        store.clear_steps(run_id, [step.id for step in plan.steps])


def resolve_run(store: "Store", run_id: str, request: RunRequest, *, home: Path) -> Plan:
    """Read and check everything, keep the plan. A run that has begun keeps the plan that it has.

    Raises:
        ConfigError, InfraError: and the run has its status and reason.
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
    """Keep a run that a user stopped before its first task: who waits for it finds it `cancelled`."""
    create_run(store, request, run_id)
    store.finish_run(run_id, Status.CANCELLED, "stopped by a user before it began", time.time())


def prepare_nodes(context: TaskContext) -> Plan:
    """After the lease: look at the nodes, settle the plan, put the suite's code there.

    Raises:
        InfraError: a node cannot be used; the run has its status and reason.
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
    """Give every step a status: attempts that nobody closed are closed, what never started is said.

    Args:
        stopped: whether a person stopped the run; else what never started is somebody's fault.

    Returns:
        lines for a person: what had to be done.
    """
    said: list[str] = []
    store, run = context.store, context.run
    plan = store.plan_or_none(run)
    if plan is None:
        return ["the run ended before it had a plan: there is nothing to collect"]
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
            (Status.CANCELLED, "not started: the run was stopped before it")
            if stopped
            else (
                Status.INFRA_FAILURE,
                "not started: its task, or one before it, ended without a word; see their logs",
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
    """List every node, end what is left of the run there, give the slots back; what there was, in words."""
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
            with context.nodes() as nodes:  # it never began there, but it claimed its slots
                nodes.each_that_answers(lambda session: session.unclaim(run))
    finally:
        store.release_leases(run, keep=unlisted)
    store.put_document(run, "leftovers", leftovers)
    return leftovers


def judge_run(context: TaskContext) -> tuple[Status, str]:
    """Ask every check; what the run's status is, and why. A run that ended before it began keeps what it has."""
    store, run = context.store, context.run
    known = store.get_run(run)
    if known.status is not None and store.document(run, "judgement") is None:
        return known.status, known.reason
    judged = judgement.judge_run(store, run, rules=context.policy, references=context.references)
    status, reason = judged.status, judged.reason
    if status is Status.CANCELLED:
        stopped = [step for step, word in context.statuses().items() if word is Status.CANCELLED]
        reason = f"stopped by a person{f' in {stopped[0]}' if stopped else ''}"
    leftovers = store.document(run, "leftovers") or []
    if leftovers and status.severity < Status.INFRA_FAILURE.severity:
        status, reason = Status.INFRA_FAILURE, leftovers[0]
    store.put_document(run, "judgement", {"status": status.value, "reason": reason})
    return status, reason


def finish_run(context: TaskContext) -> Run:
    """Give the run the status that it was judged to have, and write its certificate.

    A run that could not be judged is an `infra_failure`: there is no run without a status.
    """
    store, run = context.store, context.run
    judged = store.document(run, "judgement")
    known = store.get_run(run)
    if known.status is not None and judged is None:
        return known
    if judged is None:
        status, reason = Status.INFRA_FAILURE, "the run could not be judged: see the log of the task `judge`"
    else:
        status, reason = Status(judged["status"]), judged["reason"]
    store.finish_run(run, status, reason, time.time())
    if judged is not None:
        judgement.write_certificate(store, run, context.home)
    return store.get_run(run)


def failed_by_us(context: TaskContext, step_id: str, error: BaseException) -> None:
    """A task of a step died of a defect of ours: say it of the step, unless it has a status."""
    if step_id and step_id not in context.statuses():
        context.store.set_step(
            context.run, step_id, Status.INFRA_FAILURE, f"tipcflow itself failed: {error!r}; see the task's log"
        )


def settle_needs(context: TaskContext, step: Step) -> None:
    """Close what a step needs and nobody closed, because all tasks that could have died."""
    for need in step.after:
        if context.store.open_attempt_number(context.run, need) is not None:
            if context.plan.step(need).kind is step.kind:
                continue  # its other nodes' tasks are at it
            needed = context.plan.step(need)
            with context.nodes(*needed.nodes) as nodes:
                StepTask(context, needed, needed.nodes[0], nodes).settle(stopped=False)


def over_budget(context: TaskContext) -> tuple[Status, str] | None:
    """(status, reason) of a step that comes after the run's budget is used up, or that confirms what nobody waits
    to know; None while there is some left."""
    confirms = context.request.confirms
    if confirms and not confirm.open_question(context.store, confirms):
        return Status.CANCELLED, f"not started: run {confirms} waits no more for this confirm run"
    if context.now() > context.budget_ends:
        return Status.INFRA_FAILURE, f"not started: {budget_words(context.budget_s)}"
    return None


def ended_before_it_began(context: TaskContext) -> tuple[Status, str] | None:
    """(status, reason) of a step of a run that has a status and never tried anything; None for others."""
    run = context.store.get_run(context.run)
    if run.status is not None and not context.store.attempts(context.run):
        return Status.BLOCKED, f"not started: the run is {run.status.value}"
    return None
