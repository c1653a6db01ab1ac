"""The DAG that keeps a deployment tidy: sweeps that know nothing of each other, every hour."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context, CronTriggerTimetable

from operators.airflow import dag_runs
from operators.airflow.connect import connect
from operators.airflow.database import refuse_sqlite_between_machines
from operators.airflow.errors import failing_plainly
from operators.airflow.events import TaskLog, listener
from operators.maintenance.docs import DOC, TASKS
from tipcflow.config.settings import settings
from tipcflow.execute.sweeps.maintenance import Upkeep

MAINTENANCE = "maintenance"
# Not at the full hour, when everything else of a site begins.
CRON = "23 * * * *"
# The next one must find this one gone.
LONGEST = timedelta(minutes=50)


class SweepOperator(BaseOperator):
    """One sweep.

    Args:
        sweep: its name, one of `sweeps()`.
    """

    def __init__(self, *, sweep: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sweep = sweep

    def execute(self, context: Context) -> str:
        """Called by Airflow; one line of what was done."""
        from tipcflow.store import Store

        known = settings()
        task_log = TaskLog(self.log)
        with failing_plainly():
            refuse_sqlite_between_machines()
        with failing_plainly(), Store.open_in_task() as store:
            upkeep = Upkeep(
                store,
                known.home,
                known.config_dir,
                connect,
                say=lambda line: self.log.info("%s", line),
                owner=dag_runs.owner_of,
                listen=lambda run: listener(known.home, run, task_log),
                now=store.now(),
            )
            done = sweeps()[self.sweep](upkeep)
        task_log.flush()
        self.log.info("%s", done)
        return done


def sweeps() -> Mapping[str, Callable[[Upkeep], str]]:
    """Name -> sweep; imported when a task wants one."""
    from tipcflow.execute.sweeps.leases import expired_leases
    from tipcflow.execute.sweeps.leftovers import leftovers
    from tipcflow.execute.sweeps.node_folders import node_folders
    from tipcflow.execute.sweeps.retention import retention
    from tipcflow.execute.sweeps.runs import runs_without_status

    known = (runs_without_status, expired_leases, leftovers, node_folders, retention)
    return {sweep.__name__: sweep for sweep in known}


def maintenance_dag() -> DAG:
    """One task per sweep, side by side."""
    dag = DAG(
        dag_id=MAINTENANCE,
        description="Gives abandoned runs a status and removes what is of no use any more",
        doc_md=DOC,
        schedule=CronTriggerTimetable(CRON, timezone="UTC", run_immediately=timedelta(0)),
        catchup=False,
        max_active_runs=1,
        # What nobody unpauses would not tidy up.
        is_paused_upon_creation=False,
        tags=["tipcflow"],
        # It comes again in an hour.
        default_args={"retries": 0, "owner": "tipcflow", "execution_timeout": LONGEST},
    )
    with dag:
        for name, doc in TASKS.items():
            SweepOperator(task_id=name, sweep=name, doc_md=doc)
    return dag
