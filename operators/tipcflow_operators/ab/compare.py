"""Task of the DAG `ab` with the pairs: starts a run, waits for it, and decides whether another one follows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from tipcflow.domain import ConfigError, InfraError, run_id_of
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.run_documents import AbDocument
from tipcflow_operators.ab.check import CHECK, request_of
from tipcflow_operators.ab.position import Position, position_of
from tipcflow_operators.ab.request import AbRequest
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.certified import find_run
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.chain.dag import CERTIFY
from tipcflow_operators.triggers.dag_run import DagRunPayload, DagRunTrigger

if TYPE_CHECKING:
    from tipcflow.execute.ab.comparison import Side
    from tipcflow.execute.ab.progress import Progress
    from tipcflow.store import Store

COMPARE = "compare"
# Maximum wait for one run, with its wait for slots and its confirmation.
DEADLINE_S = 2 * 24 * 3600.0


class CompareOperator(BaseOperator):
    """Runs pairs until the result is clear; no worker is occupied while a run is active.

    The state is computed from the DAG runs and the stored runs, so a retried or cleared task continues: pairs that
    have ended are kept, an active run is awaited again, and a stopped or broken pair is repeated.

    Returns:
        The result: `status` and `verdict`, and `run`, the run that has the stored result ('' without any).
    """

    def execute(self, context: Context) -> dict[str, str]:
        """Start or continue the comparison; defer while a run is active."""
        return self._go_on(context, None)

    def resume(self, context: Context, event: dict[str, Any], since: int) -> dict[str, str]:
        """Continue after a run has ended.

        Args:
            since: number of pairs before the task started.
        """
        ended = DagRunPayload.of(event)
        with tipcflow_errors_fail_task():
            if ended.is_late:
                raise InfraError(f"DAG run {ended.run_id} of {CERTIFY} did not end within {limit(DEADLINE_S)}")
        return self._go_on(context, since)

    def _go_on(self, context: Context, since: int | None) -> dict[str, str]:
        from tipcflow.execute.ab.progress import progress_of
        from tipcflow.execute.ab.text import pair_line
        from tipcflow.store import Store

        parent = context["dag_run"]
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            request = request_of(context)
            sides = _sides(context, request)
            position = position_of(parent.run_id, lambda child: find_run(store, child, parent.run_after))
            _refuse_other_commits(position, sides)
            first = len(position.tried) if since is None else since
            spent_s = sum(run.elapsed_s(store.now()) for run in position.runs)
            progress = progress_of(store, request.names, request.limits, position.tried, spent_s, since=first)
            if position.tried and not position.started:
                self.log.info("%s", pair_line(progress))
            if progress.why and not position.is_active and not position.started:
                return self._finish(store, position, progress, request, sides)
            if not position.is_active:
                self._start(context, position, request, sides)
            until = store.now() + DEADLINE_S
        self.log.info("%s: waiting for %s of %s", position.side, position.dag_run_id, CERTIFY)
        trigger = DagRunTrigger(dag_id=CERTIFY, run_id=position.dag_run_id, until=until)
        return self.defer(trigger=trigger, method_name="resume", kwargs={"since": first})

    @staticmethod
    def _start(context: Context, position: Position, request: AbRequest, sides: "dict[str, Side]") -> None:
        from tipcflow.execute.ab.progress import WORKS

        parent, side = context["dag_run"], sides[position.side]
        conf = dict(request.confs[side.label])
        if side.commit:
            conf["suite_ref"] = side.commit
        # A broken run may have been on a broken node.
        if on := next((run.id for run in position.runs if run.status in WORKS and run.nodes), ""):
            conf["nodes_of"] = on
        if position.following:
            conf["lease_to"] = run_id_of(CERTIFY, position.following, parent.run_after)
        dag_runs.start(
            CERTIFY,
            position.dag_run_id,
            run_after=parent.run_after,
            conf=conf,
            note=f"{side.label} of {parent.dag_id} {parent.run_id}: {side.name}",
        )

    def _finish(
        self,
        store: "Store",
        position: Position,
        progress: "Progress",
        request: AbRequest,
        sides: "dict[str, Side]",
    ) -> dict[str, str]:
        """Log and store the result."""
        from tipcflow.execute.ab.text import result_json, result_lines, verdict_line

        for line in result_lines(request.limits, progress, _table):
            self.log.info("%s", line)
        known = store.runs.known([run.id for run in position.runs])
        holder = next((run.id for run in position.runs if run.id in known), "")
        if holder:
            result = result_json(sides["A"], sides["B"], request.limits, progress)
            store.documents.put(holder, AbDocument(result))
        verdict = verdict_line(request.limits, progress)
        return {"run": holder, "status": progress.status.value, "verdict": verdict}


def _sides(context: Context, request: AbRequest) -> "dict[str, Side]":
    from tipcflow.execute.ab.comparison import Side

    checked = context["ti"].xcom_pull(task_ids=CHECK)
    requests = {"A": request.a, "B": request.b}
    return {
        label: Side(label, checked[label]["name"], side_request, checked[label]["commit"])
        for label, side_request in requests.items()
    }


def _refuse_other_commits(position: Position, sides: "dict[str, Side]") -> None:
    """Refuse to continue with pairs of another commit: `check` was cleared after a branch had moved."""
    for label, run in position.labelled:
        commit = sides[label].commit
        if commit and run.suite_commit and run.suite_commit != commit:
            raise ConfigError(
                f"the ref has moved since run {run.id}",
                key=label.lower(),
                found=commit,
                expected=run.suite_commit,
                hint="start a new run of the DAG `ab`",
            )


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in a log, whose width is unlimited."""
    every = [headers, *rows]
    sizes = [max(len(row[column]) for row in every) for column in range(len(headers))]
    return ["  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)).rstrip() for row in every]
