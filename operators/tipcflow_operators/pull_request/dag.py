"""DAG `pull_request`: certifies changes on GitHub."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.sdk import DAG, BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.config.repository import load_repositories
from tipcflow.config.settings import settings
from tipcflow.domain import InfraError, TipcflowError
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.manual_dag import RESUMING
from tipcflow_operators.pull_request.docs import DOC, TASKS
from tipcflow_operators.pull_request.trigger import PullRequestPayload, PullRequestTrigger

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow_operators.pull_request.start import Runs
    from tipcflow_operators.pull_request.work import Work

PULL_REQUEST = "pull_request"
# Without events, one DAG run lasts this long. While chains run, their DAG runs are polled this often.
IDLE_S = 3600.0
BUSY_S = 60.0
# A task continues while there is work, but leaves the worker after this time.
LONGEST_S = 120.0
# Its task is next when all workers are busy: users wait for the response to a command.
_FIRST = 1000
# Airflow starts the next run at once; the date has no meaning.
_SINCE = datetime(2024, 1, 1, tzinfo=UTC)


class ListenOperator(BaseOperator):
    """Waits for deliveries and due reports in the triggerer, then handles them."""

    def execute(self, context: Context) -> str:
        """Handle the waiting work, or defer until there is some; return a one-line summary."""
        from tipcflow.github.flow import living_comparisons, work_waits
        from tipcflow.store import Store

        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            if problem := _problem():
                # Without the pause, this DAG would start and fail all the time.
                trigger = PullRequestTrigger(seconds=BUSY_S, problem=problem)
                return self.defer(trigger=trigger, method_name="resume")
            busy = bool(store.pulls.living() or store.messages.waiting() or living_comparisons(store))
            # Counted before the issues are written: a later event wakes the trigger.
            events = self._write_issues(store)
            if not work_waits(store):
                trigger = PullRequestTrigger(seconds=BUSY_S if busy else IDLE_S, alert_events=events)
                return self.defer(trigger=trigger, method_name="resume")
            return self._work(store)

    def resume(self, context: Context, event: dict[str, Any]) -> str:
        """Handle the work after the triggerer found some, or after the longest wait."""
        from tipcflow.store import Store

        if problem := PullRequestPayload.of(event).problem:
            raise AirflowFailException(problem)
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            return self._work(store)

    def _write_issues(self, store: "Store") -> int | None:
        """Write issues about events since the last pass; return the number of all events, None without issues."""
        repositories = load_repositories(settings().config_dir)
        if not any(repository.alerts == "issues" for repository in repositories):
            return None
        events = store.tracked_alerts.event_count()
        self._new_work(store).issues()
        return events

    def _work(self, store: "Store") -> str:
        from tipcflow.github.flow import work_waits

        work = self._new_work(store)
        end = time.monotonic() + LONGEST_S
        work.once()
        while time.monotonic() < end and work_waits(store):
            before = dict(work.counts)
            if work.once() == before:
                # What is left waits for something else.
                break
        done = ", ".join(f"{number} {what}" for what, number in work.counts.items())
        self.log.info("%s", done or "nothing to do")
        return done

    def _new_work(self, store: "Store") -> "Work":
        from tipcflow_operators.pull_request.connect import Connected
        from tipcflow_operators.pull_request.work import Work

        known = settings()
        return Work(
            store=store,
            repositories=load_repositories(known.config_dir),
            clients=Connected(),
            runs=airflow_runs(store),
            config_dir=known.config_dir,
            cache=known.home / "suites",
            site=conf.get("api", "base_url", fallback="") or "",
            report=lambda line: self.log.info("%s", line),
            owner="DAG pull_request",
        )


def _problem() -> str:
    """Why the configuration cannot be used, '' if it can."""
    try:
        load_repositories(settings().config_dir)
    except TipcflowError as error:
        return f"{error.status.value}: {error}"
    return ""


def airflow_runs(store: "Store") -> "Runs":
    """DAG runs of this Airflow."""
    from tipcflow_operators.pull_request.start import Runs

    def start(dag_id: str, run_id: str, run_after: datetime, conf: Mapping[str, Any], note: str) -> None:
        dag_runs.start(dag_id, run_id, run_after=run_after, conf=conf, note=note)

    return Runs(start=start, stop=lambda dag_id, run_id: stop(store, dag_id, run_id), active=active)


def active(dag_id: str, run_id: str) -> bool:
    """Whether a DAG run or one of its tasks is not ended; False if it does not exist."""
    from tipcflow.execute.sweeps.maintenance import Owner

    owner = dag_runs.owner_of(dag_id, run_id)
    return owner is Owner.LIVING


def stop(store: "Store", dag_id: str, run_id: str) -> None:
    """Mark a DAG run and its confirm run as failed; their tasks clean the nodes.

    Raises:
        InfraError: the connection `tipcflow_airflow_api` does not exist, or Airflow does not respond.
    """
    from tipcflow_operators.airflow.api import CONNECTION, api

    if not active(dag_id, run_id):
        return
    client = api()
    if client is None:
        raise InfraError(f"Airflow connection {CONNECTION} does not exist; it is required to stop runs")
    with client:
        client.set_state(dag_id, run_id, "failed")
        confirm = _confirm_run(store, dag_id, run_id)
        if confirm:
            # Only the teardown task is left, and Airflow does not stop teardown tasks.
            client.set_state("confirm", confirm, "failed")


def _confirm_run(store: "Store", dag_id: str, run_id: str) -> str:
    """The DAG run that confirms a run, '' for none that is active."""
    from tipcflow.execute.verdict.confirm import confirm_request_of

    chain_runs = [
        chain.run
        for attempt in store.pulls.living()
        for chain in attempt.chains
        if (chain.dag_id, chain.run_id) == (dag_id, run_id)
    ]
    for run in store.runs.known(chain_runs):
        request = confirm_request_of(store, run)
        if request and request.dag_run_id and active("confirm", request.dag_run_id):
            return request.dag_run_id
    return ""


def pull_request_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG; without a file in configs/repositories it has no schedule."""
    folder = (config_dir or settings().config_dir) / "repositories"
    used = any(folder.glob("*.yaml"))
    dag = DAG(
        dag_id=PULL_REQUEST,
        description="Certify pull requests, pushes and merge groups on GitHub, and report the results",
        doc_md=DOC,
        schedule="@continuous" if used else None,
        start_date=_SINCE,
        catchup=False,
        max_active_runs=1,
        # A paused DAG would leave required checks without a conclusion.
        is_paused_upon_creation=False,
        tags=["tipcflow", "pull request"],
        default_args={**RESUMING, "priority_weight": _FIRST},
    )
    with dag:
        ListenOperator(task_id="listen", doc_md=TASKS["listen"])
    return dag
