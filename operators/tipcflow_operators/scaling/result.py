"""Last task of the DAG `scaling`: speed, speed-up and efficiency of all topologies."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.domain import Status, exit_code
from tipcflow.domain.numbers.units import percentage
from tipcflow.domain.run.scaling import ScaledTopology
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.scaling.check import CHECK, series_of
from tipcflow_operators.scaling.measure import run_of, status_of
from tipcflow_operators.tasks.verdict import set_note

if TYPE_CHECKING:
    from tipcflow.execute.scaling.result import Measured
    from tipcflow.store import Store


class ResultOperator(BaseOperator):
    """Fails if and only if the exit code of `tipcflow scaling run` for these runs is not 0."""

    def execute(self, context: Context) -> str:
        """Store and log the result; return it as one line."""
        from tipcflow.execute.scaling.result import measured, worst_status
        from tipcflow.store import Store

        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            series, _ = series_of(context)
            cases = context["ti"].xcom_pull(task_ids=CHECK)
            result = measured(store, series, [_entry(store, context, case) for case in cases])
        self._log(result)
        worst = worst_status(result) or Status.NOT_RUN
        line = _line(result, worst)
        set_note(context, line, self.log)
        if worst is Status.NOT_RUN or exit_code(worst):
            raise AirflowFailException(line)
        return line

    def _log(self, result: "Measured") -> None:
        """Log the table, the topologies without a speed, and the notes."""
        from tipcflow.report.text.markdown_text import table
        from tipcflow.report.text.scaling import COLUMNS, scaling_cells

        rows = [scaling_cells(row) for row in result.rows]
        for line in table(COLUMNS, rows).splitlines() if rows else ():
            self.log.info("%s", line)
        for entry in result.document.topologies:
            if entry.reason:
                self.log.info("%s: %s: %s", entry.topology, entry.status.value, entry.reason)
        for note in result.notes:
            self.log.info("note: %s", note)


def _entry(store: "Store", context: Context, case: dict[str, Any]) -> ScaledTopology:
    """Return a topology with its run, if it has one."""
    dag_run = context["dag_run"]
    entry = ScaledTopology(topology=case["topology"], batch_size_per_device=case["batch"], reason=case["why"])
    run = None if case["why"] else run_of(store, dag_run.run_id, dag_run.run_after, case)
    if case["why"]:
        return entry
    if run is None:
        # Its task failed, and the DAG run ends with the state of this task.
        missing = "no run was started; see the log of its task"
        return entry.model_copy(update={"status": Status.INFRA_FAILURE, "reason": missing})
    status = status_of(run)
    reason = "" if status in (Status.PASS, Status.IMPROVEMENT) else run.reason
    return entry.model_copy(update={"run": run.id, "status": status, "reason": reason})


def _line(result: "Measured", worst: Status) -> str:
    """Return the result as one line: the largest topology with a speed, or why there is none."""
    if worst is Status.NOT_RUN:
        return "no topology was trained"
    ran = [entry for entry in result.document.topologies if entry.status is not Status.NOT_RUN]
    problems = [entry for entry in ran if exit_code(entry.status)]
    if problems:
        return "; ".join(f"{entry.topology}: {entry.status.value}: {entry.reason}" for entry in problems)
    if not result.rows:
        return f"{worst.value}: no run printed a speed"
    last = max(result.rows, key=lambda row: (row.devices, row.topology))
    gain = "" if last.speedup is None else f", speed-up {last.speedup:.2f}"
    share = "" if last.efficiency is None else f", efficiency {percentage(last.efficiency)}"
    return f"{last.topology}: {last.median_speed:.2f} samples/s{gain}{share}"
