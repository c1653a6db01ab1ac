"""Following a DAG run: progress, end and cancellation, each with a deadline."""

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.numbers.units import limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from devcluster.airflow.stack import Stack
    from tipcflow.airflow_api import Airflow, DagRun, TaskInstance
    from tipcflow.cli.output.live import LiveDisplay
    from tipcflow.store import Store

DAG_DEADLINE_S = 120.0
# A lite run takes minutes, whole mode on two small nodes hours. Each step has its own, shorter deadline.
RUN_DEADLINE_S = 24 * 3600.0
CANCEL_DEADLINE_S = 300.0
_DEMO = "demo__"
_EVENTS_EVERY_S = 0.25
_POLL_S = 1.0
_LOG_LINES = 12


def wait_for_dag(airflow: "Airflow", stack: "Stack", dag_id: str, *, deadline_s: float = DAG_DEADLINE_S) -> None:
    """Wait until Airflow lists the DAG.

    Raises:
        ConfigError: the DAG is not among those of the DAGs folder; includes Airflow's import errors.
        InfraError: a component of Airflow exited.
    """
    from devcluster.signals import interrupt_guard

    until = time.monotonic() + deadline_s
    while True:
        interrupt_guard.check()
        stack.check()
        if any(dag.dag_id == dag_id for dag in airflow.dags()):
            return
        errors = airflow.import_errors(since=stack.since)
        if errors:
            details = "\n".join(f"{file}:\n{_indented(text)}" for file, text in sorted(errors.items()))
            raise ConfigError(f"Airflow cannot import its DAG files; DAG {dag_id} is missing\n{details}")
        if time.monotonic() > until:
            # The error names similar DAGs.
            airflow.dag(dag_id)
        time.sleep(_POLL_S)


def end_leftovers(airflow: "Airflow", report: "Callable[[str], None]") -> None:
    """Mark leftover DAG runs of killed demos as failed, or they would continue next to the new one."""
    for old in airflow.unfinished():
        if old.run_id.startswith(_DEMO):
            with contextlib.suppress(ConfigError):  # the run finished meanwhile, or its DAG no longer exists
                airflow.set_state(old.dag_id, old.run_id, "failed")
                report(f"stopped run {old.run}, left behind by a killed demo")


class Ended(NamedTuple):
    """The result of following a run.

    Attributes:
        cancelled: the DAG run was marked as failed because of a signal.
        stopped: a signal was received, possibly after the end of the run.
    """

    cancelled: bool
    stopped: bool


def follow(
    airflow: "Airflow", stack: "Stack", store: "Store", home: Path, dag_run: "DagRun", display: "LiveDisplay"
) -> Ended:
    """Show a run's progress until it ends. Ctrl-C marks it as failed and waits for its cleanup.

    Raises:
        InfraError: a component of Airflow exited, or a deadline passed.
    """
    from tipcflow.cli.commands.signals import cancel_on_signals
    from tipcflow.cli.run import plan_of
    from tipcflow.execute.progress import Event, Kind

    run = dag_run.run
    display.bind(lambda: plan_of(store, run))
    display.take(Event(Kind.RUN, run))
    cancel, cancelled = threading.Event(), False
    deadline = _Deadline(RUN_DEADLINE_S, f"run {run}")
    show = _shown(home, run, display)
    asked_at = 0.0
    with cancel_on_signals(cancel, display.note):
        while True:
            deadline.check()
            show()
            if time.monotonic() - asked_at >= _POLL_S:
                stack.check()
                ended, asked_at = _has_ended(airflow, stack, dag_run), time.monotonic()
                if ended:
                    show()
                    return Ended(cancelled, cancel.is_set())
                if cancel.is_set() and not cancelled:
                    airflow.set_state(dag_run.dag_id, dag_run.run_id, "failed")
                    cancelled, deadline = True, _Deadline(CANCEL_DEADLINE_S, f"cancelled run {run}")
            time.sleep(_EVENTS_EVERY_S)


def _shown(home: Path, run: str, display: "LiveDisplay") -> "Callable[[], None]":
    """Returns: a function that displays the events since its last call."""
    from tipcflow.execute.events import read_events
    from tipcflow.execute.progress import Kind

    offset = 0

    def show() -> None:
        nonlocal offset
        events, offset = read_events(home, run, offset)
        for event in events:
            if event.kind is not Kind.RUN:
                display.take(event)

    return show


def broken_tasks(airflow: "Airflow", stack: "Stack", dag_run: "DagRun") -> str:
    """The failed tasks, each with the last lines and the path of its log."""
    tasks = airflow.task_instances(dag_run.dag_id, dag_run.run_id)
    failed = [task for task in tasks if task.state == "failed"]
    return "\n".join(_broken(task, stack.airflow_home) for task in failed) or "no failed task"


def _broken(task: "TaskInstance", airflow_home: Path) -> str:
    folder = airflow_home / "logs" / f"dag_id={task.dag_id}" / f"run_id={task.run_id}" / f"task_id={task.task_id}"
    if task.map_index >= 0:
        folder /= f"map_index={task.map_index}"
    path = folder / f"attempt={task.try_number}.log"
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return f"task {task.task_id} failed; it has no log at {path}"
    tail = [line for line in map(_readable, lines) if line][-_LOG_LINES:]
    return f"task {task.task_id} failed; the end of {path}:\n{_indented(chr(10).join(tail))}"


def _readable(line: str) -> str:
    """The message and the error of a line of a task's log; '' for markers of log groups."""
    try:
        record = json.loads(line)
        text = str(record["event"])
        errors = [f"{error['exc_type']}: {error['exc_value']}" for error in record.get("error_detail") or ()]
    except (ValueError, KeyError, TypeError):
        return line
    return "" if text.startswith("::") else "\n".join([text, *errors])


def _has_ended(airflow: "Airflow", stack: "Stack", dag_run: "DagRun") -> bool:
    try:
        return airflow.dag_run(dag_run.dag_id, dag_run.run_id).state.ended
    except InfraError:
        # Airflow does not respond; if one of its components died, that is the better reason.
        stack.check()
        raise


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.strip().splitlines())


class _Deadline:
    def __init__(self, seconds: float, what: str) -> None:
        self._seconds, self._what = seconds, what
        self._until = time.monotonic() + seconds

    def check(self) -> None:
        if time.monotonic() > self._until:
            raise InfraError(f"{self._what} did not end within {limit(self._seconds)}")
