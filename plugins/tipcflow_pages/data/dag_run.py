"""Finds the Airflow DAG run of a run by the run's id, and the run of a DAG run."""

import logging
import re
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import InstrumentedAttribute

from tipcflow.domain import run_id_of
from tipcflow_operators.airflow.internals import DagRun, create_session

T = TypeVar("T")
_FORM = re.compile(r"^(\d{8}t\d{6})-.+-[0-9a-f]{8}$")
_log = logging.getLogger(__name__)


def dag_run_path(run_id: str) -> str:
    """Return the UI path of a run's DAG run; '' if there is none or Airflow has deleted it.

    A run's id starts with the second of the DAG run's `run_after` and ends with a hash of DAG ID and DAG run ID.
    """
    form = _FORM.match(run_id)
    if form is None:
        return ""
    second = datetime.strptime(form[1], "%Y%m%dt%H%M%S").replace(tzinfo=UTC)
    query = select(DagRun.dag_id, DagRun.run_id, DagRun.run_after)
    query = query.where(DagRun.run_after >= second, DagRun.run_after < second + timedelta(seconds=1))
    try:
        with create_session() as session:
            candidates = session.execute(query).all()
    except SQLAlchemyError as error:
        _log.warning("cannot look up the DAG run of %s in Airflow's database: %s", run_id, error)
        return ""
    for dag_id, dag_run_id, run_after in candidates:
        if run_id_of(dag_id, dag_run_id, run_after) == run_id:
            return f"dags/{quote(dag_id)}/runs/{quote(dag_run_id)}"
    return ""


def dag_run_state(dag_id: str, dag_run_id: str) -> str:
    """Return the state of a DAG run in Airflow, '' if there is none."""
    state = _value_of(DagRun.state, dag_id, dag_run_id)
    return str(getattr(state, "value", state or ""))


def run_of_dag_run(dag_id: str, dag_run_id: str) -> str:
    """Return the id that the run of a DAG run has; '' if there is no such DAG run."""
    run_after = _value_of(DagRun.run_after, dag_id, dag_run_id)
    return run_id_of(dag_id, dag_run_id, run_after) if run_after else ""


def _value_of(column: InstrumentedAttribute[T], dag_id: str, dag_run_id: str) -> T | None:
    """Return a column of a DAG run; None if there is no such DAG run or Airflow's database cannot be read."""
    query = select(column).where(DagRun.dag_id == dag_id, DagRun.run_id == dag_run_id)
    try:
        with create_session() as session:
            return session.execute(query).scalar_one_or_none()
    except SQLAlchemyError as error:
        _log.warning("cannot look up DAG run %s of %s in Airflow's database: %s", dag_run_id, dag_id, error)
        return None
