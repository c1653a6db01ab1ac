"""One fault of a run in Airflow."""

import contextlib
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.faults.case import STRICT, Case
from tests.support.scheduler import DAG, Scheduler

from tipcflow.airflow_api import DagRun
from tipcflow.domain import TipcflowError

END_S = 270.0


class AirflowRunning:
    """A running run in Airflow, the counterpart of `Running` for the CLI."""

    def __init__(self, scheduler: Scheduler, dag_run: DagRun) -> None:
        self.scheduler = scheduler
        self.dag_run = dag_run

    @property
    def id(self) -> str:
        return self.dag_run.run

    @property
    def over(self) -> bool:
        return self.scheduler.now(self.dag_run).state.ended

    @property
    def output(self) -> str:
        """The states of its tasks, and what the database says of the run."""
        states = self.scheduler.states(self.dag_run)
        with self.scheduler.site.store() as store:
            known = store.known_runs([self.id]).get(self.id)
        return f"{states}\n{known.status if known else None}: {known.reason if known else ''}"

    def is_deferred(self, task: str = "train") -> bool:
        """Whether the task, on all nodes, is watched by the triggerer."""
        states = self.scheduler.states(self.dag_run)
        mine = [state for name, state in states.items() if name.partition("[")[0] == task]
        return bool(mine) and set(mine) == {"deferred"}


class AirflowCase(Case):
    """What a scenario works with; all cases share one Airflow and its two nodes."""

    def __init__(self, folder: Path, scheduler: Scheduler, stack: ExitStack) -> None:
        super().__init__(folder, scheduler.site.nodes, stack)
        self.scheduler = scheduler
        self.site = scheduler.site
        for path in (self.site.suite / "train.py", self.site.configs / "policies" / "pr.yaml"):
            stack.callback(path.write_text, path.read_text())
        self.site.configure_policy(**STRICT)

    def begin(self, dag_id: str = DAG, **conf: Any) -> AirflowRunning:
        """Start a run in Airflow."""
        self.watch()
        running = AirflowRunning(self.scheduler, self.scheduler.start(dag_id, **conf))
        self.stack.callback(self._stop, running)
        return running

    def finish(self, running: AirflowRunning, *, seconds: float = END_S) -> None:
        """Wait for the end of a run and for its verdict; it is the one that is judged."""
        self.scheduler.ended(running.dag_run, seconds)
        # Marked by a person, it has a final state before its teardowns have run.
        self.wait_for(lambda: self.scheduler.run_of(running.dag_run).status is not None, "the verdict", 90)
        self.run = self.scheduler.run_of(running.dag_run)
        self.text = running.output

    def restart(self, component: str, *, away_s: float = 3.0) -> None:
        """SIGKILL a component of Airflow, and start it again a little later."""
        stack = self.scheduler.stack
        self.now()
        stack.kill(component)
        try:
            time.sleep(away_s)  # as a supervisor of services does
        finally:
            stack.restart(component)
            stack.wait_ready(deadline_s=120)

    def clear_mapped(self, running: AirflowRunning, task_id: str, map_index: int) -> None:
        """Clear one node's part of a task, and what comes after it, as the UI does."""
        run = running.dag_run
        body = {
            "dry_run": False,
            "dag_run_id": run.run_id,
            "only_failed": False,
            "only_running": False,
            "reset_dag_runs": True,
            "include_downstream": True,
            "task_ids": [[task_id, map_index]],
        }
        self.scheduler.call("POST", f"/api/v2/dags/{run.dag_id}/clearTaskInstances", json=body)

    def _stop(self, running: AirflowRunning) -> None:
        """After a scenario that failed nothing may go on; a run may have been deleted."""
        with contextlib.suppress(TipcflowError):
            if running.over:
                return
            self.scheduler.api.set_state(running.dag_run.dag_id, running.dag_run.run_id, "failed")
            self.scheduler.ended(running.dag_run)
