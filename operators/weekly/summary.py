"""Last task of the DAG `weekly`: a summary of all chains."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from operators.airflow.child_runs import MOST_RUNS, child_run_id
from operators.airflow.errors import tipcflow_errors_fail_task
from operators.tasks.verdict import set_note
from operators.weekly.select import LEFT_OUT, SELECT
from operators.weekly.table import Row, accuracies, counted, markdown, values_of
from tipcflow.config.settings import settings
from tipcflow.domain import Run, Status, dag_id_of, run_id_of

if TYPE_CHECKING:
    from tipcflow.store import Store

# How many earlier runs to search for one with an accuracy check.
_LOOK_BACK = 10


class SummaryOperator(BaseOperator):
    """Reports the status of every chain; fails if any of them failed."""

    def execute(self, context: Context) -> str:
        """Called by Airflow, always; returns the number of chains per status."""
        from tipcflow.store import Store

        dag_run = context["dag_run"]
        chains = context["ti"].xcom_pull(task_ids=SELECT) or []
        if not chains:
            raise AirflowFailException(f"{Status.CONFIG_ERROR.value}: no chains were selected, see task `select`")
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            rows = [_row(store, chain, dag_run.run_id, dag_run.run_after) for chain in chains]
        left_out = context["ti"].xcom_pull(task_ids=SELECT, key=LEFT_OUT) or []
        text = markdown(f"weekly {dag_run.run_id}", rows, left_out)
        path = summary_path(settings().home, dag_run.run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for line in text.splitlines():
            self.log.info("%s", line)
        self.log.info("written to %s", path)
        message = f"{len(rows)} chains: {counted(rows)}"
        set_note(context, message, self.log)
        if any(row.red for row in rows):
            raise AirflowFailException(message)
        return message


def summary_path(home: Path, dag_run_id: str) -> Path:
    """Return the path of the summary of a weekly DAG run."""
    return home / "weekly" / f"{child_run_id(dag_run_id).removeprefix('weekly__')}.md"


def _row(store: "Store", chain: str, parent: str, run_after: datetime) -> Row:
    from tipcflow.execute.verdict.conclusion import is_neutral

    dag_id = dag_id_of(chain)
    ids = [run_id_of(dag_id, child_run_id(parent, number), run_after) for number in range(1, MOST_RUNS + 1)]
    known = store.known_runs(ids)
    last = next((known[run] for run in reversed(ids) if run in known), None)
    if last is None:
        return Row(chain)
    accuracy = accuracies(store.check_results(last.id), _accuracies_before(store, last))
    return Row(chain, last, accuracy, neutral=is_neutral(store, last))


def _accuracies_before(store: "Store", run: Run) -> dict[tuple[str, str], float]:
    """Return the accuracies of the chain's last earlier run in this mode that has accuracy checks."""
    for earlier in store.earlier_runs(run, _LOOK_BACK):
        if values := values_of(store.check_results(earlier.id)):
            return values
    return {}
