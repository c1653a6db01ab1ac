"""LocalExecutor that imports modules before it forks workers, so that tasks inherit them.

A task is forked from a worker, and a worker from the scheduler. Modules not yet imported there are imported by
every task, which cost half a second of CPU per task, and ten times as long while a training used the CPUs.
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
# Modules that tasks import inside functions.
_LATE = (
    "airflow.dag_processing.dagbag",
    "airflow.providers.ssh.hooks.ssh",
    "airflow.sdk.execution_time.supervisor",
    "airflow.sdk.execution_time.task_runner",
    "asyncssh",
    "paramiko",
    "rich.table",
)
# Not imported: Alembic runs the first, nodes run the second.
_NOT_HERE = ("tipcflow.store.migrations.", "tipcflow.remote.runner.")
_ROOMS = (operators, check, config, execute, parse, plan, remote, report, store, transport)


class LocalExecutor(local_executor.LocalExecutor):
    """Airflow's LocalExecutor with preloaded modules; Airflow recognizes local executors by this class name."""

    def start(self) -> None:
        """Preload modules, then fork the workers."""
        warm()
        super().start()


def warm() -> None:
    """Import the modules that tasks need; a failed import is logged here and raised again in the task."""
    for name in _names():
        try:
            importlib.import_module(name)
        except Exception as error:
            _LOG.warning("cannot preload %s: %s", name, error)
    try:
        rehearse(settings().database_url)
    except Exception as error:
        _LOG.warning("cannot preload the database layer: %s", error)
    # Every chain's graph needs a dialect; dialects are read once and cached.
    for dialect in known_dialects():
        load_dialect(dialect)


def _names() -> Iterator[str]:
    yield from _LATE
    for room in _ROOMS:
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if not module.ispkg and not module.name.startswith(_NOT_HERE):
                yield module.name
