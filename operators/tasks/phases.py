"""Tasks of a run other than its steps: resolve, acquire, collect, release, judge."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from operators.tasks.ask_confirm import DAG_ID, ask_early, waited_for
from operators.tasks.base import RunOperator
from operators.tasks.request import Conf, read_conf, request_of
from operators.tasks.stopped import RESOLVE, stopped_by_user, was_stopped
from operators.triggers.dag_run import DagRunTrigger
from operators.triggers.job_lease_step import LeaseTrigger
from tipcflow.domain import InfraError, Status, TipcflowError

if TYPE_CHECKING:
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

    def work(self, run: "TaskContext", context: Context) -> list[str]:
        """Resolve the request; an invalid param or file is a `config_error`, before anything starts."""
        from tipcflow.execute.run.phases import open_run, resolve_run

        dag_run = context["dag_run"]
        given = {**context["params"], **(dag_run.conf or {})}
        try:
            request = self.asked(run, context, given)
            open_run(run.store, run.run, request)
            run.store.put_document(run.run, "airflow", {"dag_id": dag_run.dag_id, "run_id": dag_run.run_id})
            plan = resolve_run(run.store, run.run, request, home=run.home)
        except TipcflowError as error:
            self._fail(run, self.fallback(run, context, given), error.status, str(error))
            raise
        except Exception as error:
            self._fail(
                run,
                self.fallback(run, context, given),
                Status.INFRA_FAILURE,
                f"internal error in resolve: {error!r}",
            )
            raise
        self.log.info("run %s: %s in %s on %s", run.run, plan.chain, plan.mode, ", ".join(plan.nodes))
        if base := run.store.document(run.run, "base"):
            measured = ", ".join(one[:12] for one in base["commits"])
            self.log.info(
                "compared with runs up to the merge base %s, of commits %s", base["commit"][:12], measured
            )
        for line in plan.substitutions:
            self.log.info("%s: %s in the file, %s used: %s", line.what, line.found, line.used, line.because)
        return list(plan.nodes)

    def asked(self, run: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """Return the request of the DAG run.

        Args:
            given: the DAG's params, overridden by those of this run.

        Raises:
            ConfigError: a param is invalid.
        """
        conf = read_conf(given, allowed=self.allowed)
        return self._request(context, conf, suite=self.suite, params_file=self.params_file)

    def fallback(self, run: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """Return the request to store for a run that cannot be resolved."""
        return self._request(
            context,
            Conf(mode=str(given.get("mode")), cluster=str(given.get("cluster"))),
            suite=str(given.get("suite") or self.suite),
            params_file=str(given.get("params_file") or self.params_file or "?"),
        )

    @staticmethod
    def _request(context: Context, conf: Conf, *, suite: str, params_file: str) -> "RunRequest":
        dag_run = context["dag_run"]
        return request_of(
            conf, suite=suite, params_file=params_file, dag_id=dag_run.dag_id, dag_run_id=dag_run.run_id
        )

    @staticmethod
    def _fail(run: "TaskContext", fallback: "RunRequest", status: Status, reason: str) -> None:
        from tipcflow.execute.run.phases import open_run

        open_run(run.store, run.run, fallback)
        run.store.finish_run(run.run, status, reason, time.time())


class AcquireOperator(RunOperator):
    """Leases all slots of the run, all or none, inspects the nodes and copies the suite's code to them.

    While another run holds a slot the task defers and stays in the queue without occupying a worker.
    """

    def work(self, run: "TaskContext", context: Context) -> None:
        """Acquire the slots, or defer until they are free."""
        from tipcflow.execute.run.phases import begin_again

        begin_again(run.store, run.run)
        self._try(run, since=run.now())

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Called by Airflow when slots may be free."""
        with self.opened(context) as run:
            self._try(run, since=float(event["since"]))

    def _try(self, run: "TaskContext", *, since: float) -> None:
        from tipcflow.execute.leases.keeper import late_words
        from tipcflow.execute.leases.messages import names_of
        from tipcflow.execute.run.phases import prepare_nodes

        held = run.acquire()
        if not held:
            prepare_nodes(run)
            return
        wait_s = run.request.waits_s(run.policy)
        if since + wait_s <= run.now():
            run.store.leave_queue(run.run)
            reason = late_words(wait_s, held)
            run.store.finish_run(run.run, Status.INFRA_FAILURE, reason, time.time())
            raise InfraError(reason, hint="`tipcflow nodes` shows which runs hold the slots")
        run.note(held)
        places = [place for place in run.store.lease_queue() if place.request.run == run.run]
        trigger = LeaseTrigger(
            run=run.run,
            slots=[list(slot) for slot in run.slots],
            since=since,
            until=since + wait_s,
            owner=run.request.owner,
            names=names_of(run.cluster),
            said=held,
            looked=any(place.for_nodes_to_say for place in places),
        )
        self.defer(trigger=trigger, method_name="resume", timeout=None)


class CollectOperator(RunOperator):
    """Gives every step a status: closes orphaned attempts and records why steps were not started."""

    def work(self, run: "TaskContext", context: Context) -> None:
        """Collect; always runs."""
        from tipcflow.execute.run.phases import cancel_unresolved, collect_run

        stopped = stopped_by_user(run, context)
        if stopped and run.run not in run.store.known_runs([run.run]):
            given = {**context["params"], **(context["dag_run"].conf or {})}
            resolve = context["dag"].get_task(RESOLVE)
            assert isinstance(resolve, ResolveOperator)
            cancel_unresolved(run.store, run.run, resolve.fallback(run, context, given))
        for line in collect_run(run, stopped=stopped) or ["every step has a stored status"]:
            self.log.info("%s", line)


class ReleaseOperator(RunOperator):
    """Stops remaining processes of the run on every node and releases its slots."""

    def work(self, run: "TaskContext", context: Context) -> None:
        """Release; always runs."""
        from tipcflow.execute.run.phases import release_run

        if not was_stopped(context):
            try:
                ask_early(run, context)
            except Exception as error:
                # Task `judge` decides this again; nothing may prevent the release of slots and processes.
                self.log.warning("could not decide yet whether a confirm run is needed: %r", error)
        for line in release_run(run):
            self.log.warning("%s", line)


class JudgeOperator(RunOperator):
    """Evaluates all checks and stores the results. A failed check fails task `verdict`, not this task."""

    def work(self, run: "TaskContext", context: Context) -> None:
        """Judge; always runs."""
        from tipcflow.execute.run.phases import collect_if_missing, judge_run
        from tipcflow.execute.verdict.confirm import asked_of

        run.note("judging")
        for line in collect_if_missing(run, stopped=lambda: stopped_by_user(run, context)):
            self.log.info("%s", line)
        judge_run(run)
        waits = None if was_stopped(context) else waited_for(run, context)
        if waits:
            child, asked = waits
            self._tell_doubts(run)
            trigger = DagRunTrigger(dag_id=DAG_ID, run_id=child, until=asked.until)
            self.defer(trigger=trigger, method_name="resume", timeout=None)
        if asked_of(run.store, run.run):
            judge_run(run)  # again: now the reason why there is no confirm run is known
        self._tell(run)

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Called by Airflow when the confirm run has ended or its deadline has passed."""
        from tipcflow.execute.run.phases import judge_run

        with self.opened(context) as run:
            run.note("re-evaluating with the confirm run's results")
            judge_run(run)
            self._tell(run)

    def _tell_doubts(self, run: "TaskContext") -> None:
        for result in run.store.check_results(run.run):
            if result.values.get("confirm"):
                self.log.info(
                    "suspected regression: %s %s %s  %s", result.check, result.step, result.leg, result.reason
                )

    def _tell(self, run: "TaskContext") -> None:
        judged = run.store.document(run.run, "judgement") or {}
        for result in sorted(run.store.check_results(run.run), key=lambda one: -one.status.severity):
            where = " ".join(word for word in (result.step, result.leg, result.metric) if word)
            self.log.info("%-18s %-12s %s  %s", result.status.value, result.check, where, result.reason)
        reason = judged.get("reason")
        self.log.info("%s%s", judged.get("status", "no status yet"), f": {reason}" if reason else "")
