"""One fault of a run in Airflow."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from tests.support.certify import Site
from tests.support.faults.case import STRICT, Case
from tests.support.faults.fault import Door
from tests.support.scheduler import DAG, Scheduler

from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from devcluster.local_nodes.processes import children
from tipcflow.airflow_api import DagRun
from tipcflow.airflow_api.node_connections import connection_of, connections_env
from tipcflow.domain import TipcflowError
from tipcflow.domain.triggers import RESERVED

END_S = 270.0
READY_S = 180.0
# Ids of the connections of a scenario's nodes; `AIRFLOW_CONN_…` of the shared nodes would override equal ids.
CONNECTION = "fault_{}"


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
        """The states of its tasks, and the run's status in the database."""
        states = self.scheduler.states(self.dag_run)
        with self.scheduler.site.store() as store:
            known = store.runs.known([self.id]).get(self.id)
        return f"{states}\n{known.status if known else None}: {known.reason if known else ''}"

    @property
    def printed(self) -> str:
        """The logs of all its tasks."""
        logs = []
        for task in self.scheduler.tasks(self.dag_run):
            if task.try_number:
                name = task.task_id.rpartition(".")[2]
                logs.append(self.scheduler.log(self.dag_run, task.task_id, map_index=task.map_index))
                logs[-1] = f"--- {name}\n{logs[-1]}"
        return "\n".join(logs)

    def is_deferred(self, task: str = "train") -> bool:
        """Whether the task, on all nodes, is watched by the triggerer."""
        return self.states_of(task) == {"deferred"}

    def states_of(self, task: str) -> set[str]:
        """The states of a task's instances, one per node."""
        states = self.scheduler.states(self.dag_run)
        return {state for name, state in states.items() if name.partition("[")[0] == task}


class AirflowCase(Case):
    """What a scenario works with; all cases share one Airflow and its two nodes."""

    door: Door = "airflow"
    short_budget = 0.75
    # Between a task and its trigger no process is in contact with a node for some seconds on a busy machine.
    node_lease_s = 30.0
    # The lease of an Airflow run lasts half an hour.
    lease_expires = False

    def __init__(self, folder: Path, scheduler: Scheduler, stack: ExitStack) -> None:
        super().__init__(folder, scheduler.site.nodes, stack)
        self.scheduler = scheduler
        self.site = scheduler.site
        self._options: dict[str, Any] = {}
        changed = (
            self.site.suite / "train.py",
            self.site.policy_file,
            self.site.suite_file,
            self.site.cluster_file,
        )
        for path in changed:
            stack.callback(path.write_text, path.read_text())
        self.site.configure_policy(**STRICT)

    def nodes_of_its_own(self, **settings: Any) -> LocalNodes:
        """Other nodes in the same Airflow, with connections of their own. Runs are not compared with others."""
        self.stack.callback(setattr, self.site, "nodes", self.site.nodes)
        nodes = self.stack.enter_context(local_nodes(self.folder / "nodes", **settings))
        self.site.nodes = nodes
        self.scheduler.connect({CONNECTION.format(one.name): connection_of(one) for one in nodes.cluster.nodes})
        content = yaml.safe_load(nodes.write_cluster_file(self.site.cluster_file).read_text())
        for node in content["nodes"]:
            node["connection"] = CONNECTION.format(node["name"])
        self.site.cluster_file.write_text(yaml.safe_dump(content))
        self._options = {"diagnose": True}
        return nodes

    def use_database(self, url: str) -> None:
        """Restart Airflow with another metrics database, and again with its own at the end of the scenario."""
        self.stack.callback(self._restart_all)
        self.stack.callback(setattr, self.site, "database_url", self.site.database_url)
        self.site.database_url = url
        with self.site.store():
            pass  # made by an installation before its Airflow starts
        self._kill_all()
        self._start_all(TIPCFLOW_DATABASE_URL=url)

    def shorten_heartbeats(self) -> None:
        """Restart Airflow with a scheduler that retries tasks without a heartbeat after 20 s instead of 60 s."""
        self.stack.callback(self._restart_all)
        self._kill_all()
        self._start_all(
            AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT="20",
            AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL="5",
        )

    def retried(self, running: AirflowRunning, task: str) -> bool:
        """Whether all instances of a task have begun a second try."""
        tries = [
            one.try_number for one in self.scheduler.tasks(running.dag_run) if one.task_id.endswith(f".{task}")
        ]
        return bool(tries) and min(tries) > 1 and running.states_of(task) <= {"running", "deferred"}

    def kill_controller(self, running: AirflowRunning) -> None:
        """SIGKILL all components and workers. After the scenario Airflow is restarted, and `begin`'s callback ends
        the run, whose teardowns keep it running until there is a scheduler."""
        self.stack.callback(self._start_all)
        self.now()
        self._kill_all()

    def _kill_all(self) -> None:
        stack = self.scheduler.stack
        for name in ("scheduler", *(one for one in stack.components if one != "scheduler")):
            family = _family(stack.pids[name])
            stack.kill(name)
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _start_all(self, **env: str) -> None:
        stack = self.scheduler.stack
        stack.since = time.time()
        stack.start({**connections_env(self.scheduler.site.nodes.cluster), **env})
        stack.wait_ready(deadline_s=READY_S)

    def _restart_all(self) -> None:
        self._kill_all()
        self._start_all()

    def start_changed(self) -> AirflowRunning:
        """A run of the DAG for any params file."""
        return self.begin("certify", suite="toy", params_file="toy/train_infer_python.txt")

    def offer_clusters(self, names: Collection[str]) -> None:
        """Let Airflow parse the chain's DAG again: its form accepts the clusters that were there at that time."""
        stack = self.scheduler.stack
        # Airflow drops a change within 30 s of the last one (`min_serialized_dag_update_interval`).
        time.sleep(31.0)
        stack.kill("dag-processor")
        stack.restart("dag-processor")
        stack.wait_ready(deadline_s=120)

        def accepts() -> bool:
            params = self.scheduler.call("GET", f"/api/v2/dags/{DAG}/details").json()["params"]
            return all(re.fullmatch(params["cluster"]["schema"]["pattern"], name) for name in names)

        self.wait_for(accepts, f"the form to accept {sorted(names)}", 120)

    def waits_for_slots(self, running: AirflowRunning) -> None:
        """Wait until the triggerer waits for the run's slots."""
        self.wait_for(lambda: running.is_deferred("acquire"), f"the lease's deferral: {running.output}", 240)

    def cancel(self, running: AirflowRunning) -> None:
        """A user marks the run as failed while the triggerer watches it."""
        self.wait_for(running.is_deferred, "the deferral", 120)
        self.now()
        self.scheduler.api.set_state(running.dag_run.dag_id, running.dag_run.run_id, "failed")

    def begin(self, dag_id: str = DAG, **conf: Any) -> AirflowRunning:
        """Start a run in Airflow; one whose trigger is reserved for tasks, as a task does."""
        self.watch()
        start = self.scheduler.start_by_task if conf.get("trigger") in RESERVED else self.scheduler.start
        running = AirflowRunning(self.scheduler, start(dag_id, **self._options, **conf))
        self.stack.callback(self._stop, running)
        return running

    def start(self, *extra: str, site: Site | None = None, **options: str) -> AirflowRunning:
        """Start a run of the toy chain."""
        assert (extra, site) == ((), None), "only the CLI has options and other sites"
        return self.begin(**options)

    def lost(self, running: AirflowRunning) -> None:
        """Wait until the task or the trigger of node b has noticed that its connection is lost."""
        time.sleep(3.0)  # both poll every second

    def reconnected(self, running: AirflowRunning) -> None:
        """The trigger reconnects while the training ends."""

    def printed(self, running: AirflowRunning) -> str:
        """The status and the logs of all tasks."""
        return f"{running.output}\n{running.printed}"

    def end(self, running: AirflowRunning, *, seconds: float = END_S) -> None:
        """Wait for the end of a run."""
        self.finish(running, seconds=seconds)

    def finish(self, running: AirflowRunning, *, seconds: float = END_S) -> None:
        """Wait for the end of a run and for its verdict; this run is the one under judgment."""
        self.scheduler.ended(running.dag_run, seconds)
        # Marked by a user, it has a final state before its teardowns have run.
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
        """After a scenario that failed nothing may continue; a run may have been deleted."""
        with contextlib.suppress(TipcflowError):
            if running.over:
                return
            self.scheduler.api.set_state(running.dag_run.dag_id, running.dag_run.run_id, "failed")
            self.scheduler.ended(running.dag_run)


def _family(pid: int) -> list[int]:
    """Return the process ids of all descendants of a process."""
    below = children(pid)
    return [*below, *(one for child in below for one in _family(child))]
