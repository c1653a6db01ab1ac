"""Task of the DAG `bisect` with the runs: starts some, waits for them, and decides whether others follow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from tipcflow.domain import ConfigError, InfraError, Run, Status
from tipcflow.domain.alert.entry import TIPCFLOW
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.triggers import BISECT
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.certified import ChildRun, find_run
from tipcflow_operators.airflow.child_runs import child_run_id
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.bisect.check import CHECK, request_of
from tipcflow_operators.bisect.request import BisectRequest
from tipcflow_operators.bisect.versions import Versions
from tipcflow_operators.chain.dag import CERTIFY
from tipcflow_operators.tasks.request import param_error
from tipcflow_operators.triggers.dag_run import DagRunPayload, DagRunTrigger

if TYPE_CHECKING:
    from tipcflow.execute.bisection.loop import Bisection, Progress
    from tipcflow.store import Store

SEARCH = "search"
# Maximum wait for one run. It has the lowest priority, so it may wait for days.
DEADLINE_S = 7 * 24 * 3600.0
# Upper limit of runs in one DAG run.
MOST_RUNS = 500
_NAMES = {"METRIC": "metric"}


class SearchOperator(BaseOperator):
    """Runs the chain with versions until one has the required probability; no worker is occupied meanwhile.

    The state is computed from the DAG runs and the stored runs, so a retried or cleared task continues: runs that
    have ended are kept, and active runs are awaited again.

    Returns:
        The result: `status` and `verdict`, and `run`, the run that has the stored result ('' without any).
    """

    def execute(self, context: Context) -> dict[str, str]:
        """Start or continue the search; defer while a run is active."""
        return self._go_on(context, None, [])

    def resume(
        self, context: Context, event: dict[str, Any], since: int, places: list[int], started: int = 1
    ) -> dict[str, str]:
        """Continue after a run has ended.

        Args:
            since: number of runs before the task started.
            places: indices of the versions of the runs since then.
            started: number of runs that were started last, at the same time.
        """
        ended = DagRunPayload.of(event)
        with tipcflow_errors_fail_task():
            if ended.is_late:
                raise InfraError(f"DAG run {ended.run_id} of {CERTIFY} did not end within {limit(DEADLINE_S)}")
        return self._go_on(context, since, places, started)

    def _go_on(self, context: Context, since: int | None, places: list[int], started: int = 1) -> dict[str, str]:
        from tipcflow.store import Store

        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            request = request_of(context)
            children = _children(store, context)
            waits = next((number for number, child in enumerate(children, 1) if child.is_active), 0)
            if since is None:
                since = sum(not child.is_active for child in children)
            if not waits:
                bisection = _bisection(store, context, request)
                own = _own(children, since, places)
                progress = self._advance(store, context, request, bisection, own, since)
                self._log_values(bisection, own[-started:], is_first=len(children) == since)
                if progress.next is None:
                    return self._finish(store, context, request, bisection, progress, own)
                waits = len(children) + 1
                following = self._start(context, request, bisection, progress, len(children))
                places, started = [*places[: len(children) - since], *following], len(following)
            until = store.now() + DEADLINE_S
        child = _child(context, waits)
        self.log.info("waiting for %s of %s", child, CERTIFY)
        trigger = DagRunTrigger(dag_id=CERTIFY, run_id=child, until=until)
        state = {"since": since, "places": places, "started": started}
        return self.defer(trigger=trigger, method_name="resume", kwargs=state)

    def _advance(
        self,
        store: "Store",
        context: Context,
        request: BisectRequest,
        bisection: "Bisection",
        own: Sequence[tuple[int, Run]],
        since: int,
    ) -> "Progress":
        """Return the progress; an end that cannot be measured is stored as the result before the task fails."""
        spent_s = sum(run.elapsed_s(store.now()) for _, run in own)
        try:
            return bisection.advance(own, spent_s, since=since)
        except ConfigError as error:
            error = param_error(error, _NAMES)
            result = BisectionDocument(
                chain=bisection.subject.chain,
                mode=bisection.subject.mode,
                metric=bisection.subject.name,
                step=bisection.subject.step,
                leg=bisection.subject.leg,
                good=bisection.versions[0].id,
                bad=bisection.versions[-1].id,
                sentence=f"undecided: {error.message}",
                runs=tuple(run.id for _, run in own),
            )
            _keep(store, context, request, result)
            raise error from None

    def _log_values(self, bisection: "Bisection", last: Sequence[tuple[int, Run]], *, is_first: bool) -> None:
        """Log what is searched, or the values of the last runs."""
        from tipcflow.execute.bisection.text import opening, prior_line, value_line

        if is_first:
            for line in filter(None, (opening(bisection), prior_line(bisection))):
                self.log.info("%s", line)
        for place, run in last if not is_first else ():
            self.log.info("%s", value_line(bisection, run, place))

    def _start(
        self, context: Context, request: BisectRequest, bisection: "Bisection", progress: "Progress", done: int
    ) -> list[int]:
        """Start runs of the next versions; return the indices of these versions."""
        from tipcflow.execute.bisection.text import measure_line

        parent = context["dag_run"]
        assert progress.next is not None
        places = [progress.next, *progress.others][: request.parallel]
        if request.max_runs:
            places = places[: max(1, request.max_runs - done)]
        suite_commit, part = _versions(context).suite_commit, bisection.part()
        for number, place in enumerate(places, done + 1):
            version = bisection.versions[place]
            self.log.info("%s", measure_line(bisection, progress, place, ahead=number - done - 1))
            dag_runs.start(
                CERTIFY,
                _child(context, number),
                run_after=parent.run_after,
                conf=request.conf_of(version, suite_commit, part),
                note=f"{parent.dag_id} {parent.run_id}: {version}",
            )
        return places

    def _finish(
        self,
        store: "Store",
        context: Context,
        request: BisectRequest,
        bisection: "Bisection",
        progress: "Progress",
        own: Sequence[tuple[int, Run]],
    ) -> dict[str, str]:
        """Log and store the result."""
        from tipcflow.execute.bisection.text import document_of, found_lines

        for line in found_lines(bisection, progress):
            self.log.info("%s", line)
        result = document_of(bisection, progress)
        known = [run.id for _, run in own if run.chain] or list(result.runs)
        holder = _keep(store, context, request, result, other=next(iter(known), ""))
        status = Status.PASS if progress.is_certain else Status.UNCONFIRMED
        return {"run": holder, "status": status.value, "verdict": result.sentence}


def _keep(
    store: "Store", context: Context, request: BisectRequest, result: BisectionDocument, other: str = ""
) -> str:
    """Store the result with the run that the search is about, or with another one; return that run."""
    from tipcflow.execute.alerts.bisected import attach_bisection

    holder = request.run or other
    if holder:
        dag_run = context["dag_run"]
        who = dag_run.triggering_user_name or TIPCFLOW
        attach_bisection(store, holder, result.model_copy(update={"dag_run": dag_run.run_id}), who=str(who))
    return holder


def _children(store: "Store", context: Context) -> list[ChildRun]:
    """Return the DAG runs that this DAG run has started.

    Raises:
        InfraError: there are MOST_RUNS.
    """
    children: list[ChildRun] = []
    while len(children) < MOST_RUNS:
        child = _child(context, len(children) + 1)
        started = find_run(store, child, context["dag_run"].run_after)
        if started is None:
            return children
        children.append(started)
    raise InfraError(f"{MOST_RUNS} runs were started without a result", hint="start a new run of the DAG `bisect`")


def _child(context: Context, number: int) -> str:
    return child_run_id(context["dag_run"].run_id, number, word=BISECT)


def _own(children: Sequence[ChildRun], since: int, places: Sequence[int]) -> list[tuple[int, Run]]:
    """Return (index of the version, run) of all runs; -1 for unknown versions, of runs before the task started."""
    runs = [child.run for child in children if child.run is not None]
    known = [*([-1] * since), *places]
    return [(place, run) for place, run in zip([*known, *([-1] * len(runs))], runs, strict=False)]


def _bisection(store: "Store", context: Context, request: BisectRequest) -> "Bisection":
    from tipcflow.execute.bisection.loop import Bisection

    return Bisection(
        store,
        request.subject,
        tuple(_versions(context).versions),
        _refuse,
        request.confidence,
        most_runs=request.max_runs,
        budget_s=request.budget_s,
        parallel=request.parallel,
    )


def _versions(context: Context) -> Versions:
    return Versions.of(context["ti"].xcom_pull(task_ids=CHECK))


def _refuse(version: object) -> Run:
    raise AssertionError(f"the task starts DAG runs, it does not execute {version}")
