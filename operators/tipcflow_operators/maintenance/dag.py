"""DAG `maintenance`: independent cleanup sweeps, every hour."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context, CronTriggerTimetable

from tipcflow.config.settings import settings
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.connect import connect
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.airflow.events import TaskLog, listener
from tipcflow_operators.maintenance.docs import DOC, TASKS

MAINTENANCE = "maintenance"
# Not at the full hour, when other scheduled jobs start.
CRON = "23 * * * *"
# A sweep must end before the next hourly run starts.
LONGEST = timedelta(minutes=50)


class SweepOperator(BaseOperator):
    """Runs one sweep.

    Args:
        sweep: a name in `sweeps()`.
    """

    def __init__(self, *, sweep: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sweep = sweep

    def execute(self, context: Context) -> str:
        """Run one kind of maintenance; return a one-line summary."""
        from tipcflow.store import Store

        known = settings()
        task_log = TaskLog(self.log)
        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            upkeep = Upkeep(
                store,
                known.home,
                known.config_dir,
                connect,
                report=lambda line: self.log.info("%s", line),
                owner=dag_runs.owner_of,
                listen=lambda run: listener(known.home, run, task_log),
                now=store.now(),
            )
            done = sweeps()[self.sweep](upkeep)
        task_log.flush()
        self.log.info("%s", done)
        return done


def sweeps() -> Mapping[str, Callable[[Upkeep], str]]:
    """Return the sweeps by name; imports are deferred until a task needs them."""
    from tipcflow.execute.sweeps.late_logs import late_logs
    from tipcflow.execute.sweeps.leases import expired_leases
    from tipcflow.execute.sweeps.leftovers import leftovers
    from tipcflow.execute.sweeps.node_folders import node_folders
    from tipcflow.execute.sweeps.node_histories import node_histories
    from tipcflow.execute.sweeps.retention import retention
    from tipcflow.execute.sweeps.runs import runs_without_status
    from tipcflow.execute.sweeps.slow_nodes import slow_nodes
    from tipcflow_operators.bisect.start import bisections
    from tipcflow_operators.notices.sweep import notices
    from tipcflow_operators.pull_request.missed import missed_deliveries

    nodes = (runs_without_status, expired_leases, leftovers, late_logs, node_folders)
    others = (retention, missed_deliveries, notices, bisections, node_histories, slow_nodes)
    return {sweep.__name__: sweep for sweep in (*nodes, *others)}


def maintenance_dag() -> DAG:
    """Return the DAG: one task per sweep, in parallel."""
    dag = DAG(
        dag_id=MAINTENANCE,
        description="Finish abandoned runs, release expired leases, fetch late logs, remove old files",
        doc_md=DOC,
        schedule=CronTriggerTimetable(CRON, timezone="UTC", run_immediately=timedelta(0)),
        catchup=False,
        max_active_runs=1,
        # A paused DAG would not clean up.
        is_paused_upon_creation=False,
        tags=["tipcflow", "maintenance"],
        # The next run comes in an hour.
        default_args={"retries": 0, "owner": "tipcflow", "execution_timeout": LONGEST},
    )
    with dag:
        for name, doc in TASKS.items():
            SweepOperator(task_id=name, sweep=name, doc_md=doc)
    return dag
