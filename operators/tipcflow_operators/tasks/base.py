"""Base class of a run's tasks: run ID, metrics database, error handling."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from tipcflow.config.settings import settings
from tipcflow.domain import TipcflowError, run_id_of, short_run_id_of
from tipcflow.domain.run_documents import AirflowDocument
from tipcflow_operators.airflow.connect import connect
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import airflow_error
from tipcflow_operators.airflow.events import TaskLog, listener
from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.airflow.tracing import name_run

if TYPE_CHECKING:
    from tipcflow.domain import Node
    from tipcflow.execute.run.context import TaskContext
    from tipcflow.store import Store
    from tipcflow.transport import Transport


class RunOperator(BaseOperator):
    """A task of a run. Subclasses implement `work`; a TipcflowError fails the task without retries.

    Any other exception is a defect or a broken worker: Airflow may retry the task, which resumes its work.
    """

    def work(self, ctx: "TaskContext", context: Context) -> Any:
        """Do the task's work; the result becomes the task's XCom."""
        raise NotImplementedError

    def connect(self, node: "Node") -> "Transport":
        """Connect to a node; operators that have a connection of their own override this."""
        return connect(node)

    def execute(self, context: Context) -> Any:
        """Do the task's work with the context of its run."""
        with self.opened(context) as ctx:
            return self.work(ctx, context)

    @contextlib.contextmanager
    def opened(self, context: Context) -> "Iterator[TaskContext]":
        """Open the database and yield the context of the task's run."""
        from tipcflow.execute.run import status_spool as spool
        from tipcflow.execute.run.context import TaskContext
        from tipcflow.store import Store

        home = settings().home
        run_id = run_of(context)
        name_run(run_id)
        name_fields(run_id)
        task_log = TaskLog(self.log)
        try:
            refuse_sqlite_between_machines()
            with Store.open_in_task() as store:
                run_id = own_run_id(store, context)
                spool.apply(home, store)
                yield TaskContext(run_id, store, home, self.connect, listener(home, run_id, task_log))
        except TipcflowError as error:
            raise airflow_error(error) from error
        finally:
            task_log.flush()


def dag_run_of(context: Context) -> AirflowDocument:
    """Return the names of the task's DAG run."""
    dag_run = context["dag_run"]
    return AirflowDocument(dag_id=dag_run.dag_id, run_id=dag_run.run_id)


def own_run_id(store: "Store", context: Context) -> str:
    """Return the same ID as `run_of`, or that which an earlier version has given the run before an upgrade.

    Raises:
        ConfigError: the run of that ID belongs to another DAG run.
    """
    from tipcflow.execute.run.opening import refuse_other_dag_run

    dag_run, own = context["dag_run"], dag_run_of(context)
    now, before = (name(own.dag_id, own.run_id, dag_run.run_after) for name in (run_id_of, short_run_id_of))
    known = store.documents.of_runs(AirflowDocument, [now, before])
    if now in known:
        refuse_other_dag_run(now, known[now], own)
    elif before in known and (known[before].dag_id, known[before].run_id) == (own.dag_id, own.run_id):
        return before
    return now


def run_of(context: Context) -> str:
    """Return the id of the tipcflow run that belongs to the task's DAG run."""
    dag_run = context["dag_run"]
    return run_id_of(dag_run.dag_id, dag_run.run_id, dag_run.run_after)
