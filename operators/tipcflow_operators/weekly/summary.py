"""Last task of the DAG `weekly`: a summary of all chains."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.config.settings import settings
from tipcflow.domain import Run, Status, TipcflowError, dag_id_of, run_id_of
from tipcflow.execute.objects.object_store import object_store
from tipcflow_operators.airflow.child_runs import MOST_RUNS, child_run_id
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.tasks.verdict import set_note
from tipcflow_operators.weekly.notify import send
from tipcflow_operators.weekly.report import (
    Earlier,
    as_html,
    as_markdown,
    as_slack,
    headline,
    newly_broken,
    sections,
)
from tipcflow_operators.weekly.select import NOT_RUN, SELECT
from tipcflow_operators.weekly.selector import measure_selector
from tipcflow_operators.weekly.table import Row, accuracies, markdown, totals, values_of

if TYPE_CHECKING:
    from tipcflow.store import Store

# Folder of the reports in TIPCFLOW_HOME and in the object store.
FOLDER = "weekly"
# How many earlier runs to search for one with an accuracy check.
_LOOK_BACK = 10
# Number of earlier runs in a trend.
_TREND = 5


class SummaryOperator(BaseOperator):
    """Reports the status of every chain; fails if any of them failed."""

    def execute(self, context: Context) -> str:
        """Return the number of chains per status; runs even if tasks failed."""
        from tipcflow.store import Store

        dag_run = context["dag_run"]
        chains = context["ti"].xcom_pull(task_ids=SELECT) or []
        if not chains:
            raise AirflowFailException(f"{Status.CONFIG_ERROR.value}: no chains were selected, see task `select`")
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            rows = [_row(store, chain, dag_run.run_id, dag_run.run_after) for chain in chains]
            earlier = {row.chain: _earlier(store, row.run) for row in rows if row.run is not None}
            selector = measure_selector(store, newly_broken(rows, earlier), settings())
        not_run = context["ti"].xcom_pull(task_ids=SELECT, key=NOT_RUN) or {}
        title = f"weekly {dag_run.run_id}"
        parts = sections(rows, earlier, not_run, selector)
        text = markdown(title, rows, not_run) + "\n" + as_markdown(parts)
        path = summary_path(settings().home, dag_run.run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        head = headline(title, rows, not_run)
        page = path.with_suffix(".html")
        page.write_text(as_html(head, parts), encoding="utf-8")
        for line in text.splitlines():
            self.log.info("%s", line)
        self.log.info("written to %s", path)
        message = totals(rows, not_run)
        problem = _store_report(path, page)
        if problem:
            self.log.warning("%s", problem)
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            sent = send(store, head, page, as_slack(head, parts), lambda line: self.log.info("%s", line))
        failed = [attempt.line for attempt in sent if not attempt.is_sent]
        message = "; ".join(filter(None, [message, problem, *failed]))
        set_note(context, message, self.log)
        if any(row.red for row in rows):
            raise AirflowFailException(message)
        return message


def summary_path(home: Path, dag_run_id: str) -> Path:
    """Return the path of the summary of a weekly DAG run."""
    return home / FOLDER / f"{child_run_id(dag_run_id).removeprefix('weekly__')}.md"


def _store_report(*files: Path) -> str:
    """Write the report to the object store, if there is one; return why not, or ''.

    Each machine then has its own TIPCFLOW_HOME, which ends with its container.
    """
    objects = object_store()
    if objects is None:
        return ""
    try:
        for file in files:
            objects.put(f"{FOLDER}/{file.name}", file)
    except TipcflowError as error:
        return f"the report is not stored: {error.message}"
    return ""


def _row(store: "Store", chain: str, parent: str, run_after: datetime) -> Row:
    from tipcflow.execute.verdict.conclusion import is_neutral

    dag_id = dag_id_of(chain)
    ids = [run_id_of(dag_id, child_run_id(parent, number), run_after) for number in range(1, MOST_RUNS + 1)]
    known = store.runs.known(ids)
    last = next((known[run] for run in reversed(ids) if run in known), None)
    if last is None:
        return Row(chain)
    accuracy = accuracies(store.checks.results(last.id), _accuracies_before(store, last))
    return Row(chain, last, accuracy, neutral=is_neutral(store, last))


def _earlier(store: "Store", run: Run) -> Earlier:
    """Return the status of the chain's last earlier run, and its accuracies of the last runs."""
    runs = store.history.earlier(run, _TREND)
    trends: dict[str, list[float]] = {}
    for past_run in [*reversed(runs), run]:
        for (step, metric), value in values_of(store.checks.results(past_run.id)).items():
            trends.setdefault(f"{step} {metric}".strip(), []).append(value)
    series = {name: tuple(values) for name, values in trends.items() if len(values) > 1}
    return Earlier(runs[0].status if runs else None, series)


def _accuracies_before(store: "Store", run: Run) -> dict[tuple[str, str], float]:
    """Return the accuracies of the chain's last earlier run in this mode that has accuracy checks."""
    for earlier in store.history.earlier(run, _LOOK_BACK):
        if values := values_of(store.checks.results(earlier.id)):
            return values
    return {}
