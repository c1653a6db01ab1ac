"""Imports of tasks, done once in the process from which tasks are forked."""

import importlib
import logging
import pkgutil
from collections.abc import Iterator

import tipcflow_operators
from tipcflow import check, config, execute, parse, plan, remote, report, store, transport
from tipcflow.config.settings import settings
from tipcflow.params import known_dialects, load_dialect
from tipcflow.store.rehearsal import rehearse
from tipcflow_operators.airflow import internals

_LOG = logging.getLogger(__name__)
# Modules that tasks import inside functions.
_LATE = (
    *internals.PRELOADED,
    "airflow.providers.ssh.hooks.ssh",
    "asyncssh",
    "paramiko",
    "rich.table",
)
# Not imported: Alembic runs the first, nodes run the second, and the third calls `warm`.
_NOT_HERE = ("tipcflow.store.migrations.", "tipcflow.remote.runner.", "tipcflow_operators.airflow.celery_imports")
_PACKAGES = (tipcflow_operators, check, config, execute, parse, plan, remote, report, store, transport)


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
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.ispkg and not module.name.startswith(_NOT_HERE):
                yield module.name
