"""What all tasks of a run share: which run it is, its database, and errors that a person reads."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from operators.airflow.connect import connect
from operators.airflow.database import refuse_sqlite_between_machines
from operators.airflow.errors import airflow_error
from operators.airflow.events import TaskLog, listener
from tipcflow.config.settings import settings
from tipcflow.domain import TipcflowError, run_id_of

if TYPE_CHECKING:
    from tipcflow.domain import Node
    from tipcflow.execute.run.context import TaskContext
    from tipcflow.transport import Transport


class RunOperator(BaseOperator):
    """A task of a run. Subclasses implement `work`; what they raise as TipcflowError fails the task at once.

    Everything else that is raised is a defect of ours or a broken worker: Airflow may try the task again, and the
    task finds what it had begun.
    """

    def work(self, run: "TaskContext", context: Context) -> Any:
        """Do the task's part; what it returns is the task's XCom."""
        raise NotImplementedError

    def connect(self, node: "Node") -> "Transport":
        """Connect to a node; operators that have a connection of their own override this."""
        return connect(node)

    def execute(self, context: Context) -> Any:
        """Called by Airflow."""
        with self.opened(context) as run:
            return self.work(run, context)

    @contextlib.contextmanager
    def opened(self, context: Context) -> "Iterator[TaskContext]":
        """The run of this task, with its database open."""
        from tipcflow.execute.run import status_spool as spool
        from tipcflow.execute.run.context import TaskContext
        from tipcflow.store import Store

        home = settings().home
        run_id = run_of(context)
        task_log = TaskLog(self.log)
        try:
            refuse_sqlite_between_machines()
            with Store.open_in_task() as store:
                spool.apply(home, store)
                yield TaskContext(run_id, store, home, self.connect, listener(home, run_id, task_log))
        except TipcflowError as error:
            raise airflow_error(error) from error
        finally:
            task_log.flush()


def run_of(context: Context) -> str:
    """Our run that the task's DAG run is."""
    dag_run = context["dag_run"]
    return run_id_of(dag_run.dag_id, dag_run.run_id, dag_run.run_after)
