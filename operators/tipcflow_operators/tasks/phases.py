"""Tasks of a run other than its steps: resolve, acquire, collect, release, judge."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import ConfigError, InfraError, Status, TipcflowError
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.domain.run_documents import ClusterDocument, JudgementDocument, MergeBaseDocument
from tipcflow_operators.airflow.tracing import trace_wait
from tipcflow_operators.tasks.base import RunOperator, dag_run_of
from tipcflow_operators.tasks.request import Conf, given_params, read_conf, request_of
from tipcflow_operators.tasks.request_confirm import (
    DAG_ID,
    further_confirmation,
    pending_confirmation,
    request_early,
)
from tipcflow_operators.tasks.started_by import trigger_or_unknown
from tipcflow_operators.tasks.stopped import RESOLVE, note_stop, stopped_by_user, stopping_user, was_stopped
from tipcflow_operators.triggers.allocation import AllocationTrigger
from tipcflow_operators.triggers.dag_run import DagRunTrigger
from tipcflow_operators.triggers.lease import LeasePayload, LeaseTrigger

if TYPE_CHECKING:
    from tipcflow.domain.run_documents import ConfirmationDocument
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.context import TaskContext


class ResolveOperator(RunOperator):
    """Reads the suite at the tested ref, makes the plan and stores it for all later tasks.

    Returns:
        Names of the plan's nodes, over which prepare and train are mapped.
    """

    def __init__(self, *, suite: str, params_file: str, allowed: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite
        self.params_file = params_file
        self.allowed = tuple(allowed)

    def work(self, ctx: "TaskContext", context: Context) -> list[str]:
        """Resolve the request; an invalid param or file is a `config_error`, before anything starts."""
        from tipcflow.execute.run.opening import open_run, resolve_run

        given = given_params(context)
        try:
            request = self.read_request(ctx, context, given)
            open_run(ctx.store, ctx.run_id, request, dag_run=dag_run_of(context))
            refuse_local_login(request)
            plan = resolve_run(ctx.store, ctx.run_id, request, home=ctx.home)
        except TipcflowError as error:
            self._fail(ctx, context, given, error.status, str(error))
            raise
        except Exception as error:
            self._fail(ctx, context, given, Status.INFRA_FAILURE, f"internal error in resolve: {error!r}")
            raise
        self.log.info("run %s: %s in %s on %s", ctx.run_id, plan.chain, plan.mode, ", ".join(plan.nodes))
        if base := ctx.store.documents.get(ctx.run_id, MergeBaseDocument):
            measured = ", ".join(commit[:12] for commit in base.commits)
            self.log.info("compared with runs up to the merge base %s, of commits %s", base.commit[:12], measured)
        for line in plan.substitutions:
            self.log.info("%s: %s in the file, %s used: %s", line.what, line.found, line.used, line.because)
        return list(plan.nodes)

    def read_request(self, ctx: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """Return the request of the DAG run.

        Args:
            given: the DAG's params, overridden by those of this run.

        Raises:
            ConfigError: a param is invalid.
        """
        conf = read_conf(given, allowed=self.allowed)
        if conf.nodes_of and ctx.store.documents.get(conf.nodes_of, ClusterDocument) is None:
            raise ConfigError(
                "no such run in the metrics database, or the run has no nodes",
                key="nodes_of",
                found=conf.nodes_of,
                expected="a run ID",
            )
        return request_of(conf, suite=self.suite, params_file=self.params_file, dag_run=context["dag_run"])

    def fallback(self, ctx: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """Return the request to store for a run that cannot be resolved."""
        return request_of(
            Conf(mode=str(given.get("mode")), cluster=str(given.get("cluster"))),
            suite=str(given.get("suite") or self.suite),
            params_file=str(given.get("params_file") or self.params_file or "?"),
            dag_run=context["dag_run"],
            trigger=trigger_or_unknown(context["dag_run"]),
        )

    def _fail(
        self, ctx: "TaskContext", context: Context, given: Mapping[str, Any], status: Status, reason: str
    ) -> None:
        from tipcflow.execute.run.opening import open_run

        open_run(ctx.store, ctx.run_id, self.fallback(ctx, context, given), dag_run=dag_run_of(context))
        ctx.store.runs.finish(ctx.run_id, status, reason, time.time())


def refuse_local_login(request: "RunRequest") -> None:
    """Refuse a Slurm cluster that tasks and triggers cannot reach.

    Raises:
        ConfigError: its login node has no Airflow connection, or the cluster file is invalid.
    """
    cluster = load_cluster(request.cluster, request.config_dir)
    if cluster.slurm is not None and not cluster.nodes[0].connection:
        raise ConfigError(
            "is required in Airflow", file=cluster.name, key="login.connection", expected="the ID of a connection"
        )


class AcquireOperator(RunOperator):
    """Leases all slots of the run, all or none, inspects the nodes and copies the suite's code to them.

    While another run holds a slot the task defers and stays in the queue without occupying a worker.
    """

    def work(self, ctx: "TaskContext", context: Context) -> None:
        """Acquire the slots, or defer until they are free."""
        from tipcflow.execute.run.opening import restart_run

        restart_run(ctx.store, ctx.run_id)
        self._try(ctx, since=ctx.now())

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Try again to acquire: slots may be free."""
        with self.opened(context) as ctx:
            self._try(ctx, since=LeasePayload.of(event).since)

    def _try(self, ctx: "TaskContext", *, since: float) -> None:
        if ctx.cluster.slurm is not None:
            self._allocate(ctx, since=since)
            return
        from tipcflow.execute.leases.keeper import timeout_message
        from tipcflow.execute.leases.messages import names_of
        from tipcflow.execute.run.phases import prepare_nodes

        ctx = ctx.choose_nodes()
        held = ctx.acquire()
        if not held:
            trace_wait(ctx.run_id, since, ctx.now())
            prepare_nodes(ctx)
            return
        wait_s = ctx.request.waits_s(ctx.policy)
        if since + wait_s <= ctx.now():
            ctx.store.queue.leave(ctx.run_id)
            reason = timeout_message(wait_s, held)
            ctx.store.runs.finish(ctx.run_id, Status.INFRA_FAILURE, reason, time.time())
            raise InfraError(reason, hint="`tipcflow nodes` shows which runs hold the slots")
        ctx.note(held)
        places = [place for place in ctx.store.queue.places() if place.request.run == ctx.run_id]
        trigger = LeaseTrigger(
            run=ctx.run_id,
            slots=[list(slot) for slot in ctx.slots],
            since=since,
            until=since + wait_s,
            owner=ctx.request.owner,
            names=names_of(ctx.cluster),
            said=held,
            looked=any(place.must_check_nodes for place in places),
            groups=ctx.groups,
        )
        self.defer(trigger=trigger, method_name="resume", timeout=None)

    def _allocate(self, ctx: "TaskContext", *, since: float) -> None:
        """Get the nodes from Slurm, or defer until Slurm has allocated them."""
        from tipcflow.execute.allocation.document import AllocationDocument
        from tipcflow.execute.allocation.hold import release, timeout_message
        from tipcflow.execute.run.phases import prepare_nodes

        wait_s = ctx.request.waits_s(ctx.policy)
        # Before the request, which adds the place in Slurm's queue.
        ctx.store.documents.put(ctx.run_id, AllocationWaitDocument(since=since, until=since + wait_s))
        try:
            why = ctx.allocate()
        except TipcflowError as error:
            ctx.store.runs.finish(ctx.run_id, error.status, str(error), time.time())
            raise
        if not why:
            ctx.store.documents.remove(ctx.run_id, AllocationWaitDocument)
            trace_wait(ctx.run_id, since, ctx.now())
            prepare_nodes(replace(ctx))
            return
        if since + wait_s <= ctx.now():
            release(ctx.store, ctx.run_id, ctx.connect)
            reason = timeout_message(wait_s, why)
            ctx.store.runs.finish(ctx.run_id, Status.INFRA_FAILURE, reason, time.time())
            raise InfraError(reason)
        ctx.note(why)
        known = ctx.store.documents.get(ctx.run_id, AllocationDocument)
        trigger = AllocationTrigger(
            name=known.name if known else "",
            cluster=ctx.cluster.model_dump(mode="json"),
            since=since,
            until=since + wait_s,
            logged=why,
            run=ctx.run_id,
        )
        self.defer(trigger=trigger, method_name="resume", timeout=None)


class CollectOperator(RunOperator):
    """Gives every step a status: closes orphaned attempts and records why steps were not started."""

    def work(self, ctx: "TaskContext", context: Context) -> None:
        """Collect; always runs."""
        from tipcflow.execute.run.opening import cancel_unresolved
        from tipcflow.execute.run.phases import collect_run

        known = ctx.run_id in ctx.store.runs.known([ctx.run_id])
        stopped = note_stop(ctx, context, self.log) if known else stopped_by_user(ctx, context)
        if stopped and not known:
            given = {**context["params"], **(context["dag_run"].conf or {})}
            resolve = context["dag"].get_task(RESOLVE)
            assert isinstance(resolve, ResolveOperator)
            request, user = resolve.fallback(ctx, context, given), stopping_user(context, self.log)
            cancel_unresolved(ctx.store, ctx.run_id, request, user=user)
        for line in collect_run(ctx, stopped=stopped) or ["every step has a stored status"]:
            self.log.info("%s", line)


class ReleaseOperator(RunOperator):
    """Stops remaining processes of the run on every node and releases its slots, or hands them over."""

    def work(self, ctx: "TaskContext", context: Context) -> None:
        """Release; always runs."""
        from tipcflow.execute.run.phases import release_run

        stopped = was_stopped(context)
        if not stopped:
            try:
                request_early(ctx, context)
            except Exception as error:
                # Task `judge` decides this again; nothing may prevent the release of slots and processes.
                self.log.warning("could not decide yet whether a confirm run is needed: %r", error)
        for line in release_run(ctx, hands_over=not stopped):
            self.log.warning("%s", line)


class JudgeOperator(RunOperator):
    """Evaluates all checks and stores the results. A failed check fails task `verdict`, not this task."""

    def work(self, ctx: "TaskContext", context: Context) -> None:
        """Judge; always runs."""
        from tipcflow.execute.run.phases import collect_if_missing, judge_run
        from tipcflow.execute.verdict.confirm import confirm_request_of

        ctx.note("judging")
        run = ctx.store.runs.get(ctx.run_id)
        if run.status is not None:
            self.log.info("the run is %s: later runs and decisions do not count for it", run.status.value)
        for line in collect_if_missing(ctx, stopped=lambda: note_stop(ctx, context, self.log)):
            self.log.info("%s", line)
        judge_run(ctx)
        self._wait(ctx, None if was_stopped(context) else pending_confirmation(ctx, context))
        if confirm_request_of(ctx.store, ctx.run_id):
            judge_run(ctx)  # again: now the reason why there is no confirm run is known
        self._log_results(ctx)

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Continue after the confirm run has ended or its deadline has passed."""
        from tipcflow.execute.run.phases import judge_run
        from tipcflow.execute.verdict.confirm import confirm_request_of

        with self.opened(context) as ctx:
            ctx.note("re-evaluating with the confirm run's results")
            judge_run(ctx)
            before = confirm_request_of(ctx.store, ctx.run_id)
            self._wait(ctx, None if was_stopped(context) else further_confirmation(ctx, context))
            if confirm_request_of(ctx.store, ctx.run_id) != before:
                judge_run(ctx)  # it could not start
            self._log_results(ctx)

    def _wait(self, ctx: "TaskContext", waits: "tuple[str, ConfirmationDocument] | None") -> None:
        """Defer the task if the run waits for a confirm run."""
        if waits:
            child, confirmation = waits
            self._report_suspicions(ctx)
            trigger = DagRunTrigger(dag_id=DAG_ID, run_id=child, until=confirmation.until)
            self.defer(trigger=trigger, method_name="resume", timeout=None)

    def _report_suspicions(self, ctx: "TaskContext") -> None:
        for result in ctx.store.checks.results(ctx.run_id):
            if result.measured.needs_confirm:
                self.log.info(
                    "suspected regression: %s %s %s  %s", result.check, result.step, result.leg, result.reason
                )

    def _log_results(self, ctx: "TaskContext") -> None:
        judged = ctx.store.documents.get(ctx.run_id, JudgementDocument)
        for result in sorted(ctx.store.checks.results(ctx.run_id), key=lambda check: -check.status.severity):
            where = " ".join(word for word in (result.step, result.leg, result.metric) if word)
            self.log.info("%-18s %-12s %s  %s", result.status.value, result.check, where, result.reason)
        status = judged.status.value if judged else "no status yet"
        self.log.info("%s%s", status, f": {judged.reason}" if judged and judged.reason else "")
