"""Fields `tipcflow_run`, `tipcflow_step` and `tipcflow_node` of the log lines of tasks and triggers.

Airflow writes the bound variables of structlog into every line. They are only bound with `[logging] json_logs`:
otherwise, Airflow's log view would show them at the end of every line.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from airflow.configuration import conf
from structlog.contextvars import bind_contextvars, bound_contextvars


def name_fields(run: str = "", step: str = "", node: str = "") -> None:
    """Add fields to all following log lines of this task or trigger; empty ones keep their value."""
    if has_fields():
        bind_contextvars(**_given(run, step, node))


@contextmanager
def log_fields(run: str = "", step: str = "", node: str = "") -> Iterator[None]:
    """Add fields to the log lines within the context; a thread does not inherit those of its task."""
    if not has_fields():
        yield
        return
    with bound_contextvars(**_given(run, step, node)):
        yield


@cache
def has_fields() -> bool:
    """Whether Airflow is configured to log JSON."""
    return bool(conf.getboolean("logging", "json_logs", fallback=False))


def _given(run: str, step: str, node: str) -> dict[str, str]:
    fields = {"tipcflow_run": run, "tipcflow_step": step, "tipcflow_node": node}
    return {name: value for name, value in fields.items() if value}
