"""Faults of Airflow's own processes and database, and what users do to a run in it."""

import time

from tests.faults.airflow.side import Side
from tests.faults.fault import AIRFLOW, CANCELLED, INTERRUPTED, NONE, Fault
from tests.faults.world import World

LAST_S = 60.0


def _side(world: World) -> Side:
    side: Side = world.airflow
    return side


def _kill(component: str) -> object:
    def strike(world: World) -> None:
        _side(world).kill_component(component)

    return strike


def _kill_workers(world: World) -> None:
    if not world.wait(lambda: _side(world).kill_workers() > 0, LAST_S, lambda: False):
        world.notes.append("no worker had a task")


def _close_database(world: World) -> None:
    _side(world).close_database(world.rng.uniform(3.0, 12.0))


def _mark(state: str) -> object:
    def strike(world: World) -> None:
        side = _side(world)
        side.mark(state)
        if side.steps_ended:
            world.notes.append("every step had ended before the mark, which cancels steps")

    return strike


def _clear(world: World) -> None:
    """One node's instance of the training task."""
    side = _side(world)
    found = [one for one in side.tasks(side.run) if one.task_id.endswith(".train")]
    index = {"a": 0, "b": 1}[world.target]
    task = next(one for one in found if one.map_index == index)
    side.clear_one(task.task_id, index)


def _delete_queued(world: World) -> None:
    """A run that waits behind a pause is deleted; the case's own run comes after it."""
    side = _side(world)
    side.pause(True)
    try:
        gone = side.begin()
        time.sleep(1.0)  # how long it is queued
        side.call("DELETE", f"/api/v2/dags/{gone.dag_id}/dagRuns/{gone.run_id}")
    finally:
        side.pause(False)
    with world.site.store() as store:
        if store.runs.known([gone.run]):
            world.differences.append(f"the deleted run {gone.run} is in the database")


def _mark_queued(world: World) -> None:
    """The case's own run is marked as failed before Airflow begins it."""
    side = _side(world)
    side.pause(True)
    try:
        side.dag_run = side.begin()
        time.sleep(1.0)  # how long it is queued
        side.mark("failed")
    finally:
        side.pause(False)


FAULTS = (
    *(
        Fault(
            f"KILL {component}",
            f"Airflow's {component} gets SIGKILL and is started again 2 s later",
            frozenset(),
            strike=_kill(component),
            healed=True,
            names_node=False,
            in_training=False,
            doors=AIRFLOW,
            shared=True,
            classes=NONE,
        )
        for component in ("scheduler", "triggerer", "api-server", "dag-processor")
    ),
    Fault(
        "KILL workers",
        "the executor's processes that have a task get SIGKILL",
        frozenset(),
        strike=_kill_workers,
        healed=True,
        names_node=False,
        in_training=False,
        doors=AIRFLOW,
        shared=True,
        classes=NONE,
    ),
    Fault(
        "database closed",
        "PostgreSQL ends all connections to the metrics database and refuses new ones for 3 to 12 s",
        frozenset(),
        strike=_close_database,
        healed=True,
        names_node=False,
        in_training=False,
        doors=AIRFLOW,
        shared=True,
        classes=NONE,
    ),
    Fault(
        "marked failed",
        "a user marks the DAG run as failed",
        CANCELLED,
        strike=_mark("failed"),
        names_node=False,
        in_training=False,
        doors=AIRFLOW,
        alone=True,
        classes=NONE,
    ),
    Fault(
        "marked success",
        "a user marks the DAG run as successful",
        CANCELLED,
        strike=_mark("success"),
        names_node=False,
        in_training=False,
        doors=AIRFLOW,
        alone=True,
        classes=NONE,
    ),
    Fault(
        "task cleared",
        "a user clears one node's training task in the middle of the training",
        frozenset(),
        strike=_clear,
        healed=True,
        names_node=False,
        doors=AIRFLOW,
        alone=True,
        classes=NONE | INTERRUPTED,
    ),
    Fault(
        "queued run deleted",
        "a queued DAG run of the same chain is deleted",
        frozenset(),
        prepare=_delete_queued,
        healed=True,
        names_node=False,
        doors=AIRFLOW,
        paddle=False,
        classes=NONE,
    ),
    Fault(
        "queued run marked failed",
        "a user marks the DAG run as failed before Airflow begins it",
        CANCELLED | {"not started"},
        prepare=_mark_queued,
        names_node=False,
        doors=AIRFLOW,
        alone=True,
        paddle=False,
        classes=NONE,
    ),
)
