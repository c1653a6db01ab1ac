"""The LocalExecutor with its imports done before it forks: a task's process finds them made.

A task is forked from a worker, and a worker from the scheduler. What they have not imported each task imports
again, which took half a second of CPU per task, and ten times as long where a training has the CPUs.
"""

import importlib
import logging
import pkgutil
from collections.abc import Iterator

from airflow.executors import local_executor

import operators
from tipcflow import check, config, execute, parse, plan, remote, report, store, transport
from tipcflow.config.settings import settings
from tipcflow.params import known_dialects, load_dialect
from tipcflow.store.rehearsal import rehearse

_LOG = logging.getLogger(__name__)
# What tasks import inside functions, by the time they run.
_LATE = (
    "airflow.dag_processing.dagbag",
    "airflow.providers.ssh.hooks.ssh",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "asyncssh",
    "paramiko",
    "rich.table",
)
# Alembic runs the first, nodes run the second.
_NOT_HERE = ("tipcflow.store.migrations.", "tipcflow.remote.runner.")
_ROOMS = (operators, check, config, execute, parse, plan, remote, report, store, transport)


class LocalExecutor(local_executor.LocalExecutor):
    """Airflow's own, started warm. It keeps its name, by which Airflow tells local executors from others."""

    def start(self) -> None:
        """Import, then fork the workers."""
        warm()
        super().start()


def warm() -> None:
    """Import what tasks need. What cannot be imported is left for the task that needs it, which says why."""
    for name in _names():
        try:
            importlib.import_module(name)
        except Exception as error:
            _LOG.warning("%s cannot be imported before the tasks: %s", name, error)
    try:
        rehearse(settings().database_url)
    except Exception as error:
        _LOG.warning("the database cannot be rehearsed before the tasks: %s", error)
    # Every graph of a chain is drawn with a dialect; they are read once and kept.
    for dialect in known_dialects():
        load_dialect(dialect)


def _names() -> Iterator[str]:
    yield from _LATE
    for room in _ROOMS:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if not module.ispkg and not module.name.startswith(_NOT_HERE):
                yield module.name
