"""What started a DAG run, and which run IDs only tasks of tipcflow may choose."""

from typing import Any, Protocol

from tipcflow.domain import ConfigError
from tipcflow.domain.triggers import RESERVED

# Airflow's type of a DAG run that a task started; the API of users cannot set it (DagRunType.OPERATOR_TRIGGERED).
_BY_TASK = "operator_triggered"
UNKNOWN = "airflow"


class StartedRun(Protocol):
    """The fields of Airflow's DAG run that this module reads."""

    dag_id: str
    run_id: str
    run_type: Any


def trigger_of(dag_run: StartedRun) -> str:
    """Return what started a DAG run, from the first part of its ID: `manual`, `weekly`, `ci`, `demo` …

    Users choose the IDs of their DAG runs, and some triggers change the rules of a run (domain/triggers.py).

    Raises:
        ConfigError: the first part is reserved, and no task started the DAG run.
    """
    first, separator, _ = dag_run.run_id.partition("__")
    if not separator:
        return UNKNOWN
    run_type = dag_run.run_type
    if first in RESERVED and getattr(run_type, "value", run_type) != _BY_TASK:
        raise ConfigError(
            f"{first}__ is reserved for DAG runs that tasks of tipcflow start",
            key="dag_run_id",
            found=dag_run.run_id[:80],
            expected="another first part, such as ci__, or no ID",
        )
    return first


def trigger_or_unknown(dag_run: StartedRun) -> str:
    """Return the same, `airflow` for a reserved ID: for the record of a run that cannot be resolved."""
    try:
        return trigger_of(dag_run)
    except ConfigError:
        return UNKNOWN
