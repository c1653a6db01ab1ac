"""Airflow as a case's faults see it: its components, its database, the case's DAG run."""

import contextlib
import os
import signal
import time
from typing import Any

import psycopg
from tests.faults.airflow.seat import SeatSite
from tests.support import postgres
from tests.support.scheduler import Scheduler

from devcluster.airflow.stack import Stack
from devcluster.local_nodes.processes import children
from tipcflow.airflow_api import DagRun
from tipcflow.domain import TipcflowError

READY_S = 180.0
END_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


class Side(Scheduler):
    """One case's view. The DAG run is None until it is started.

    Args:
        server: the PostgreSQL server of the metrics database.
    """

    site: SeatSite

    def __init__(self, site: SeatSite, stack: Stack, server: postgres.Server) -> None:
        super().__init__(site, stack)
        self.server = server
        self.dag_run: DagRun | None = None

    def connect_nodes(self) -> None:
        """Store the connections of the case's nodes in Airflow."""
        self.connect(self.site.connections())

    def begin(self) -> DagRun:
        """Trigger a run of the seat's chain."""
        name = self.site.seat.name
        return self.start(self.site.seat.dag_id, cluster=name, policy=name)

    @property
    def run(self) -> DagRun:
        """The case's DAG run."""
        assert self.dag_run is not None
        return self.dag_run

    @property
    def over(self) -> bool:
        """Whether the DAG run has ended; False while the api-server does not respond."""
        with contextlib.suppress(TipcflowError):
            return self.now(self.run).state.ended
        return False

    @property
    def known(self) -> bool:
        """Whether the metrics database knows the run."""
        with self.site.store() as store:
            return bool(store.runs.known([self.run.run]))

    @property
    def steps_ended(self) -> bool:
        """Whether every step of the plan has its status, so that only checks and the verdict are left."""
        with self.site.store() as store:
            if not store.runs.known([self.run.run]):
                return False
            plan = store.plans.get_or_none(self.run.run)
            return plan is not None and {step.id for step in plan.steps} <= set(store.steps.statuses(self.run.run))

    def mark(self, state: Any, run: DagRun | None = None) -> None:
        """Mark a DAG run as a user does in the UI."""
        one = run or self.run
        self.api.set_state(one.dag_id, one.run_id, state)

    def pause(self, paused: bool) -> None:
        """Pause the seat's DAG, or let it run."""
        self.call("PATCH", f"/api/v2/dags/{self.site.seat.dag_id}", json={"is_paused": paused})

    def clear_one(self, task_id: str, map_index: int) -> None:
        """Clear one node's instance of a mapped task, and what comes after it, as the UI does."""
        body = {
            "dry_run": False,
            "dag_run_id": self.run.run_id,
            "only_failed": False,
            "only_running": False,
            "reset_dag_runs": True,
            "include_downstream": True,
            "task_ids": [[task_id, map_index]],
        }
        self.call("POST", f"/api/v2/dags/{self.run.dag_id}/clearTaskInstances", json=body)

    def kill_component(self, name: str) -> None:
        """SIGKILL a component and start it again 2 s later, as a supervisor of services does."""
        self.stack.kill(name)
        time.sleep(2.0)
        self.stack.restart(name)
        self.stack.wait_ready(deadline_s=READY_S)

    def kill_workers(self) -> int:
        """SIGKILL the executor's processes that execute a task of any run; how many tasks that were."""
        workers = {one: children(one) for one in children(self.stack.pids["scheduler"])}
        busy = [(worker, below) for worker, below in workers.items() if below]
        for worker, below in busy:
            for pid in (*below, worker):
                os.kill(pid, signal.SIGKILL)
        return len(busy)

    def close_database(self, seconds: float) -> None:
        """End all connections to the metrics database and refuse new ones for a while."""
        name = postgres.name_of(self.site.database_url)
        with psycopg.connect(self.server.url("postgres"), autocommit=True) as admin:
            admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            try:
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    admin.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
                    )
                    time.sleep(0.5)
            finally:
                admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
