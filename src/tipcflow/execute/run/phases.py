"""The phases of a run: `tipcflow run` drives them in one process, Airflow runs each as a task.

Collect, release, judge and verdict run after any failure, and the run gets a status.
"""

import threading
import time
from collections.abc import Callable

from tipcflow.domain import Plan, Run, Status, Step, TipcflowError
from tipcflow.domain.run.failure import FailureClass
from tipcflow.domain.run_documents import AirflowDocument, JudgementDocument, LeaseDocument, LeftoversDocument
from tipcflow.execute.alerts.track import track_alone
from tipcflow.execute.allocation import hold
from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.execute.collect.store_files import note_lost_files
from tipcflow.execute.failure.dependencies import refusal
from tipcflow.execute.leases.keeper import TASK_WAITER_S
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.resolve.resolve import Resolved, resolved_run
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.run.deploy import deploy
from tipcflow.execute.run.inspection import inspect, settle
from tipcflow.execute.run.step import StepTask
from tipcflow.execute.source.opened import note_opened
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.conclusion import run_status, without_proof

# A lease that was handed over ends after this time, unless Airflow has started its run.
HANDOVER_S = 600.0


def prepare_nodes(context: TaskContext) -> Plan:
    """After the lease: check the nodes, settle the plan, install the suite's code.

    Raises:
        InfraError: a node is not usable; the run has its status and reason.
    """
    store, run = context.store, context.run_id
    try:
        with context.nodes() as nodes:
            context.note(f"connecting to {', '.join(context.plan.nodes)}")
            nodes.connect()
            return settle_and_deploy(context, resolved_run(store, run, home=context.home), nodes)
    except TipcflowError as error:
        context.closer.store_failure(store, run, error)
        store.runs.finish(run, error.status, str(error), time.time())
        raise


def settle_and_deploy(context: TaskContext, resolved: Resolved, nodes: Nodes) -> Plan:
    """Check the connected nodes, settle the plan, and install the suite's code; return the settled plan.

    Raises:
        InfraError: a node is not usable.
    """
    store, run = context.store, context.run_id
    plan = context.plan
    # Another allocation has other nodes.
    if not store.attempts.of(run) or context.cluster.slurm is not None:
        resolved, facts = inspect(store, run, resolved, nodes, context.note)
        plan = settle(store, run, resolved, facts, nodes)
    deploy(store, run, resolved, plan, nodes, home=context.home)
    return plan


def run_steps(context: TaskContext, nodes: Nodes, *, cancel: threading.Event) -> None:
    """Execute the steps of the plan one after the other; afterwards each has a status.

    A failed step blocks its dependents; other steps continue. Legs of one device run sequentially in one job, CPU
    legs and GPU legs in consecutive jobs, because concurrent legs on one node would distort each other's timings.

    Args:
        nodes: connected sessions of all nodes of the plan.
        cancel: set when a user stops the run.
    """
    for step in context.plan.steps:
        refused = refuse_step(context, step, stopped=cancel.is_set())
        if refused is not None:
            context.closer.leave_out(step, *refused)
        else:
            StepTask(context, step, step.nodes, nodes, cancel=cancel).run()


def refuse_step(
    context: TaskContext, step: Step, *, stopped: bool = False, lease: Callable[[], object] = lambda: None
) -> tuple[Status, str] | None:
    """Return (status, reason) of a step that must not start; None if it may start.

    Args:
        stopped: whether a user stopped the run.
        lease: makes sure that the run holds its slots, which restarts the budget of a run whose lease expired.
    """
    refused = refusal(step, context.statuses(), context.plan.steps, stopped=stopped)
    if refused is not None:
        return refused
    try:
        lease()
    except TipcflowError as error:
        return Status.INFRA_FAILURE, str(error)
    return over_budget(context, step)


def collect_run(context: TaskContext, *, stopped: bool = True) -> list[str]:
    """Give every step a status: close orphaned attempts, and record why steps were not started.

    Args:
        stopped: whether a user stopped the run; otherwise a step without an attempt is an infra_failure.

    Returns:
        messages about the closed attempts and steps.
    """
    messages: list[str] = []
    store, run = context.store, context.run_id
    plan = store.plans.get_or_none(run)
    if plan is None:
        return ["the run ended before it had a plan: nothing to collect"]
    for step in plan.steps:
        if store.attempts.open_number(run, step.id) is not None:
            with context.nodes(*step.nodes) as nodes:
                settled = StepTask(context, step, step.nodes[:1], nodes).settle(stopped=stopped)
            if settled is not None:
                status, reason = settled
                messages.append(f"{step.id}: closed as {status.value}{f': {reason}' if reason else ''}")
        statuses = context.statuses()
        if step.id in statuses:
            continue
        never = Status.INFRA_FAILURE, "not started: an upstream task died without reporting; see its log"
        status, reason = refusal(step, statuses, plan.steps, stopped=stopped) or never
        context.closer.leave_out(step, status, reason)
        messages.append(f"{step.id}: {status.value}: {reason}")
    return messages


def collect_if_missing(context: TaskContext, *, stopped: Callable[[], bool]) -> list[str]:
    """Collect for a task `collect` that died: a step without a status would be counted against the model.

    Args:
        stopped: whether a user stopped the run.
    """
    plan = context.store.plans.get_or_none(context.run_id)
    statuses = context.statuses() if plan is not None else {}
    if plan is None or all(step.id in statuses for step in plan.steps):
        return []
    return collect_run(context, stopped=stopped())


def release_run(context: TaskContext, *, hands_over: bool = False) -> list[str]:
    """List every node, end what is left of the run there, release the slots; return messages about leftovers.

    Args:
        hands_over: whether the run that follows on the same nodes, if the request names one, gets the leases, and
            a further confirm run the place in the queue.
    """
    store, run = context.store, context.run_id
    leftovers: list[str] = []
    unlisted: set[str] = set()
    queue_s: float | None = None
    try:
        if store.plans.get_or_none(run) is not None and store.nodes.facts(run):
            with context.nodes() as nodes:
                nodes.connect_reachable()
                leftovers, unlisted = clean_nodes(context, nodes)
            if hands_over and not unlisted:
                _hand_over(context)
                if confirm.may_be_followed(store, context.request, run, context.policy):
                    queue_s = TASK_WAITER_S
        elif store.documents.get(run, LeaseDocument) is not None:
            with context.nodes() as nodes:  # no job was started there, but slots were claimed
                nodes.on_reachable(lambda session: session.unclaim(run))
    finally:
        # A run that was never resolved has no policy, and no slots.
        keep_s = context.policy.waits.lease_ttl_s if unlisted else None
        store.leases.release(run, keep=unlisted, keep_s=keep_s, queue_s=queue_s)
        if why := hold.release(store, run, context.connect):
            leftovers.append(why)
    store.documents.put(run, LeftoversDocument(tuple(leftovers)))
    return leftovers


def _hand_over(context: TaskContext) -> None:
    """Give the leases to the run that follows on the same nodes, so that no waiting run gets them in between.

    That run does not exist yet: Airflow starts it when this run has ended. After a failure of the cluster it may
    be on other nodes, and gets no leases.
    """
    store, heir = context.store, context.request.lease_to
    if not heir or Status.INFRA_FAILURE in context.statuses().values():
        return
    now, own = store.now(), store.runs.get(context.run_id)
    if not any(lease.run == own.id and lease.live(now) for lease in store.leases.all()):
        return
    known = store.runs.known([heir]).get(heir)
    if known is None:
        store.runs.create(
            Run(
                id=heir,
                chain=own.chain,
                suite=own.suite,
                model=own.model,
                mode=own.mode,
                cluster=own.cluster,
                trigger=own.trigger,
                compat=own.compat,
                created_at=time.time(),
            ),
            None,
        )
    if known is None or known.status is None:
        store.leases.hand_over(own.id, heir, ttl_s=HANDOVER_S)
        context.note(f"run {heir} gets the leases")


def clean_nodes(context: TaskContext, nodes: Nodes) -> tuple[list[str], set[str]]:
    """List every connected node and end what is left of the run there.

    Returns:
        (messages about leftovers, addresses of nodes whose slots stay leased).
    """
    leftovers = nodes.clean(context.run_id)
    return leftovers, nodes.may_hold(context.store.attempts.of(context.run_id))


def judge_run(context: TaskContext) -> tuple[Status, str]:
    """Run every check; return the run's status and reason. A run that ended before its start keeps its status."""
    store, run = context.store, context.run_id
    known = store.runs.get(run)
    if known.status is not None and store.documents.get(run, JudgementDocument) is None:
        return known.status, known.reason
    note_lost_files(store, run, context.home)
    judged = judgement.judge_run(
        store, run, rules=context.policy, references=context.references, home=context.home
    )
    documents = store.documents.several(run, (LeftoversDocument, AirflowDocument))
    leftovers = (documents.get(LeftoversDocument) or LeftoversDocument()).root
    airflow = documents.get(AirflowDocument)
    verdict = JudgementDocument(status=judged.status, reason=judged.reason, parts=judged.parts)
    user = airflow.stopped_by if airflow else ""
    verdict = run_status(verdict, steps=context.statuses(), leftovers=leftovers, user=user)
    store.documents.put(run, verdict)
    return verdict.status, verdict.reason


def finish_run(context: TaskContext) -> Run:
    """Write the run's certificate and store the run's verdict.

    A run that could not be judged is an `infra_failure`: every run gets a status. So is a green run whose
    certificate cannot be signed or stored; another call does that after a repair, and stores the verdict.
    """
    store, run = context.store, context.run_id
    judged = store.documents.get(run, JudgementDocument)
    known = store.runs.get(run)
    if known.status is not None and judged is None:
        return known
    # The verdict of a run that had one is stored again: to judge other runs as of their time, its end must stay.
    ended_at = known.ended_at if known.status is not None and known.ended_at is not None else time.time()
    if judged is None:
        status, reason = Status.INFRA_FAILURE, "the run could not be judged: see the log of task `judge`"
    else:
        verdict = {"status": judged.status, "reason": judged.reason, "ended_at": ended_at}
        ended = _certified(context, known.model_copy(update=verdict))
        status, reason = ended.status or Status.INFRA_FAILURE, ended.reason
        # Before the run has its status: a task that dies here is repeated, and tracks the same run once.
        results = store.checks.results(run)
        _aside(context, "its alerts", lambda: track_alone(store, context.home, ended, results))
    store.runs.finish(run, status, reason, ended_at)
    if judged is not None:
        _aside(context, "the files that it opened", lambda: note_opened(store, run, context.home))
        # Last: the line above reads files as they were fetched.
        compress_logs(context.home / "runs" / run)
    return store.runs.get(run)


def _aside(context: TaskContext, what: str, store: Callable[[], object]) -> None:
    """Store something that is not part of the verdict; an error in it must not replace the verdict."""
    try:
        store()
    except Exception as error:
        context.note(f"{what} could not be stored: {error!r}")


def _certified(context: TaskContext, ended: Run) -> Run:
    """Write, sign and store the certificate of a run that ends; return the run with its final status."""
    store, home = context.store, context.home
    unsigned = judgement.why_unsigned(store, ended.id, home)
    if unsigned:
        unsigned += "; after the repair, clear the task `verdict` in Airflow, or run again"
        context.note(unsigned)
        ended = without_proof(store, ended, unsigned)
    judgement.write_certificate(store, ended.id, home, ended=ended, sign=not unsigned)
    if missing := judgement.store_certificate(store, ended.id, home):
        context.note(missing)
        final = without_proof(store, ended, missing)
        if final is not ended:
            judgement.write_certificate(store, ended.id, home, ended=final, sign=not unsigned)
        return final
    return ended


def record_own_failure(context: TaskContext, step_id: str, error: BaseException) -> None:
    """Store a defect of tipcflow in a step's task as the step's status, unless it has one."""
    if step_id and step_id not in context.statuses():
        context.store.steps.set(
            context.run_id, step_id, Status.INFRA_FAILURE, f"tipcflow itself failed: {error!r}; see the task's log"
        )


def settle_needs(context: TaskContext, step: Step) -> None:
    """Close the steps that a step needs and whose tasks have all died."""
    for need in step.after:
        if context.store.attempts.open_number(context.run_id, need) is not None:
            if context.plan.step(need).kind is step.kind:
                continue  # tasks of its other nodes are running
            needed = context.plan.step(need)
            with context.nodes(*needed.nodes) as nodes:
                StepTask(context, needed, needed.nodes[:1], nodes).settle(stopped=False)


def over_budget(context: TaskContext, step: Step) -> tuple[Status, str] | None:
    """Return (status, reason) of a step that starts after the end of the run's budget or of a confirmation's
    deadline; None while there is time left. The failure of a step without budget is stored."""
    if (late := context.budget.refusal(context.now())) is not None:
        context.closer.store_unstarted(step, FailureClass.BUDGET)
        return late
    confirms = context.request.confirms
    if confirms and not confirm.is_awaited(context.store, confirms):
        return Status.CANCELLED, f"not started: run {confirms} no longer waits for this confirm run"
    return None


def ended_before_it_began(context: TaskContext) -> tuple[Status, str] | None:
    """Return (status, reason) of a step of a run that has a status and no attempts; None for others."""
    run = context.store.runs.get(context.run_id)
    if run.status is not None and not context.store.attempts.of(context.run_id):
        return Status.BLOCKED, f"not started: the run is {run.status.value}"
    return None
