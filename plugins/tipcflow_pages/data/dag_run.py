"""Finds the Airflow DAG run of a run by the run's id, and the run of a DAG run."""

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import InstrumentedAttribute

from tipcflow.domain import run_id_of, short_run_id_of
from tipcflow_operators.airflow.internals import DagRun, create_session

T = TypeVar("T")
_FORM = re.compile(r"^(\d{8}t\d{6})-.+-(?:[a-z2-7]{16}|[0-9a-f]{8})$")
# Confirm runs are started by tasks: their owner is that of the run that they confirm.
_CONFIRM, _CONFIRMS = "confirm", "confirms"
_log = logging.getLogger(__name__)


def dag_run_path(run_id: str) -> str:
    """Return the UI path of a run's DAG run; '' if there is none or Airflow has deleted it."""
    names = find_dag_run(run_id)
    return f"dags/{quote(names[0])}/runs/{quote(names[1])}" if names else ""


def find_dag_run(run_id: str) -> tuple[str, str] | None:
    """Return DAG ID and DAG run ID of a run; None if there is none or Airflow has deleted it."""
    dag_run = _dag_run_of(run_id)
    return dag_run[:2] if dag_run else None


def lasting_run_id(run_id: str) -> str:
    """Return the ID of a run that a client of an earlier version names by a short ID; '' if there is none."""
    dag_run = _dag_run_of(run_id)
    return run_id_of(*dag_run) if dag_run else ""


def _dag_run_of(run_id: str) -> tuple[str, str, datetime] | None:
    """Return DAG ID, DAG run ID and date of a run's DAG run.

    A run's ID starts with the second of the DAG run's `run_after` and ends with a hash of DAG ID and DAG run ID. A
    short one may be that of two DAG runs, and then names none: a user may have chosen the second one's ID.
    """
    form = _FORM.match(run_id)
    if form is None:
        return None
    second = datetime.strptime(form[1], "%Y%m%dt%H%M%S").replace(tzinfo=UTC)
    query = select(DagRun.dag_id, DagRun.run_id, DagRun.run_after)
    query = query.where(DagRun.run_after >= second, DagRun.run_after < second + timedelta(seconds=1))
    try:
        with create_session() as session:
            candidates = session.execute(query).all()
    except SQLAlchemyError as error:
        _log.warning("cannot look up the DAG run of %s in Airflow's database: %s", run_id, error)
        return None
    names = [(dag_id, dag_run_id, run_after) for dag_id, dag_run_id, run_after in candidates]
    named = [each for each in names if run_id in (run_id_of(*each), short_run_id_of(*each))]
    return named[0] if len(named) == 1 else None


def dag_run_state(dag_id: str, dag_run_id: str) -> str:
    """Return the state of a DAG run in Airflow, '' if there is none."""
    state = _value_of(DagRun.state, dag_id, dag_run_id)
    return str(getattr(state, "value", state or ""))


def dag_run_conf(dag_id: str, dag_run_id: str) -> Mapping[str, Any]:
    """Return the params of a DAG run; none if there is no such DAG run."""
    conf: Any = _value_of(DagRun.conf, dag_id, dag_run_id)
    return conf if isinstance(conf, dict) else {}


def state_and_owner(dag_id: str, dag_run_id: str) -> tuple[str, str]:
    """Return the state of a DAG run, '' if there is none, and the user who has started it, '' for none."""
    query = select(DagRun.state, DagRun.triggering_user_name, DagRun.conf)
    query = query.where(DagRun.dag_id == dag_id, DagRun.run_id == dag_run_id)
    with create_session() as session:
        row = session.execute(query).one_or_none()
    if row is None:
        return "", ""
    state, owner, conf = row
    if dag_id == _CONFIRM and (parent := find_dag_run(str((conf or {}).get(_CONFIRMS, "")))):
        owner = state_and_owner(*parent)[1] if parent[0] != _CONFIRM else ""
    return str(getattr(state, "value", state)), str(owner or "")


def run_ids_of(dag_id: str, dag_run_id: str) -> tuple[str, ...]:
    """Return the IDs that the run of a DAG run may have: of this version, then of earlier ones; () without it."""
    run_after = _value_of(DagRun.run_after, dag_id, dag_run_id)
    if run_after is None:
        return ()
    return run_id_of(dag_id, dag_run_id, run_after), short_run_id_of(dag_id, dag_run_id, run_after)


def _value_of(column: InstrumentedAttribute[T], dag_id: str, dag_run_id: str) -> T | None:
    """Return a column of a DAG run; None if there is no such DAG run or Airflow's database cannot be read."""
    query = select(column).where(DagRun.dag_id == dag_id, DagRun.run_id == dag_run_id)
    try:
        with create_session() as session:
            return session.execute(query).scalar_one_or_none()
    except SQLAlchemyError as error:
        _log.warning("cannot look up DAG run %s of %s in Airflow's database: %s", dag_run_id, dag_id, error)
        return None
