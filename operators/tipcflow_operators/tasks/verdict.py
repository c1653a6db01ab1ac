"""Last task of a run: sets its status and writes the certificate."""

import io
from typing import TYPE_CHECKING

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.domain import Run, Status, TipcflowError
from tipcflow.domain.run_documents import JudgementDocument
from tipcflow_operators.airflow.events import Log
from tipcflow_operators.tasks.base import RunOperator
from tipcflow_operators.tasks.stopped import note_stop

if TYPE_CHECKING:
    from tipcflow.execute.run.context import TaskContext

_LONGEST_NOTE = 1000
_WIDTH = 150


class VerdictOperator(RunOperator):
    """Sets the run's status and writes the certificate. Fails if and only if the run's exit code is non-zero."""

    def work(self, ctx: "TaskContext", context: Context) -> str:
        """Return the run's status word; fail the task if the CLI's exit code for this status is not 0."""
        from tipcflow.execute.progress import Event, Kind
        from tipcflow.execute.run.phases import collect_run, finish_run, judge_run, release_run
        from tipcflow.execute.verdict.conclusion import exit_code_of

        if ctx.store.documents.get(ctx.run_id, JudgementDocument) is None and ctx.store.attempts.of(ctx.run_id):
            # Only failed tasks were cleared: the upstream tasks have not run again.
            collect_run(ctx, stopped=note_stop(ctx, context, self.log))
            release_run(ctx)
            judge_run(ctx)
        finished = finish_run(ctx)
        status = finished.status or Status.INFRA_FAILURE
        ctx.report(Event(Kind.CHECKS, finished.reason, status=status))
        for line in verdict_lines(ctx, finished):
            self.log.info("%s", line)
        message = f"{status.value}: {finished.reason}" if finished.reason else status.value
        set_note(context, message, self.log)
        if exit_code_of(ctx.store, finished):
            raise AirflowFailException(message)
        return status.value


def verdict_lines(ctx: "TaskContext", finished: Run) -> list[str]:
    """Return the lines of the verdict as the CLI prints them."""
    from rich.console import Console

    from tipcflow.execute.verdict.run_data import load_run
    from tipcflow.report.tables import checks_table, legs_table, steps_table

    data = load_run(ctx.store, finished)
    page = io.StringIO()
    console = Console(file=page, width=_WIDTH, color_system=None)
    for table in (steps_table(data.facts), legs_table(data.facts), checks_table(data.plan, data.checks)):
        if table.row_count:
            console.print(table)
    console.print(f"run {finished.id}: {finished.status}", highlight=False)
    return page.getvalue().splitlines()


def set_note(context: Context, note: str, log: Log) -> None:
    """Set the DAG run's note, if this deployment has an API connection (`tipcflow_operators.airflow.api`)."""
    from tipcflow_operators.airflow.api import api

    dag_run = context["dag_run"]
    client = api()
    if client is None:
        return
    try:
        with client:
            client.set_note(dag_run.dag_id, dag_run.run_id, note[:_LONGEST_NOTE])
    except TipcflowError as error:
        log.warning("could not set the DAG run's note: %s", error)
