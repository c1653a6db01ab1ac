"""The tasks of a run around its steps: resolve, acquire, collect, release, judge."""

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
    """Reads the suite at the ref that is tested, makes the plan and keeps it: every later task reads that plan.

    Returns:
        The names of the plan's nodes, which prepare and train are mapped over.
    """

    def __init__(self, *, suite: str, params_file: str, allowed: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.suite = suite
        self.params_file = params_file
        self.allowed = tuple(allowed)

    def work(self, run: "TaskContext", context: Context) -> list[str]:
        """Resolve; a wrong param or file is a `config_error`, with nothing started."""
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
                f"tipcflow itself failed in resolve: {error!r}",
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
        """What the DAG run is asked for.

        Args:
            given: the DAG's params with what this run gave on top.

        Raises:
            ConfigError: a param that is wrong.
        """
        conf = read_conf(given, allowed=self.allowed)
        return self._request(context, conf, suite=self.suite, params_file=self.params_file)

    def fallback(self, run: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """What is kept of the wish of a run that cannot be resolved."""
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
    """Leases all slots of the run, all or none, looks at the nodes and puts the suite's code there.

    It tries once; while somebody else has a slot it waits deferred in the queue, which costs no worker.
    """

    def work(self, run: "TaskContext", context: Context) -> None:
        """Acquire, or wait for what is held."""
        from tipcflow.execute.run.phases import begin_again

        begin_again(run.store, run.run)
        self._try(run, since=run.now())

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Called by Airflow when slots may have come free."""
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
            raise InfraError(reason, hint="see `tipcflow nodes` for who has them")
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
    """Gives every step a status: closes what nobody closed, and says why what never started did not."""

    def work(self, run: "TaskContext", context: Context) -> None:
        """Collect; runs whatever happened before."""
        from tipcflow.execute.run.phases import cancel_unresolved, collect_run

        stopped = stopped_by_user(run, context)
        if stopped and run.run not in run.store.known_runs([run.run]):
            given = {**context["params"], **(context["dag_run"].conf or {})}
            resolve = context["dag"].get_task(RESOLVE)
            assert isinstance(resolve, ResolveOperator)
            cancel_unresolved(run.store, run.run, resolve.fallback(run, context, given))
        for line in collect_run(run, stopped=stopped) or ["every step has ended and is stored"]:
            self.log.info("%s", line)


class ReleaseOperator(RunOperator):
    """Lists every node, ends what is left of the run there, and gives its slots back."""

    def work(self, run: "TaskContext", context: Context) -> None:
        """Release; runs whatever happened before."""
        from tipcflow.execute.run.phases import release_run

        if not was_stopped(context):
            try:
                ask_early(run, context)
            except Exception as error:
                # The task `judge` asks for it again; nothing may keep slots and processes from being released.
                self.log.warning("whether to measure once more is not known yet: %r", error)
        for line in release_run(run):
            self.log.warning("%s", line)


class JudgeOperator(RunOperator):
    """Asks every check; its answers are stored. A red answer does not make this task red: the verdict does."""

    def work(self, run: "TaskContext", context: Context) -> None:
        """Judge; runs whatever happened before."""
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
            judge_run(run)  # by now it is known why there is no confirm run to wait for
        self._tell(run)

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Called by Airflow when the confirm run has ended, or it is too late for it."""
        from tipcflow.execute.run.phases import judge_run

        with self.opened(context) as run:
            run.note("judging again, with what the confirm run said")
            judge_run(run)
            self._tell(run)

    def _tell_doubts(self, run: "TaskContext") -> None:
        for result in run.store.check_results(run.run):
            if result.values.get("confirm"):
                self.log.info("in doubt: %s %s %s  %s", result.check, result.step, result.leg, result.reason)

    def _tell(self, run: "TaskContext") -> None:
        judged = run.store.document(run.run, "judgement") or {}
        for result in sorted(run.store.check_results(run.run), key=lambda one: -one.status.severity):
            where = " ".join(word for word in (result.step, result.leg, result.metric) if word)
            self.log.info("%-18s %-12s %s  %s", result.status.value, result.check, where, result.reason)
        reason = judged.get("reason")
        self.log.info("%s%s", judged.get("status", "no status yet"), f": {reason}" if reason else "")
