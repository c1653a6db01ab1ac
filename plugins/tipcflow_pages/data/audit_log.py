"""Requests of users in Airflow's audit log that concern runs and DAGs."""

import logging
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from tipcflow.domain.alert.audit import AuditEntry
from tipcflow_operators.airflow.internals import Log, create_session

_log = logging.getLogger(__name__)
# Event, as the routes of Airflow and of these pages name them -> action in words.
_ACTIONS = {
    "clear_dag_run": "clear run",
    "delete_dag": "delete DAG",
    "delete_dag_run": "delete run",
    "patch_dag": "pause or unpause DAG",
    "patch_dag_run": "mark or annotate run",
    "patch_task_instance": "mark task",
    "post_clear_task_instances": "clear tasks",
    "tipcflow_ab": "start A/B comparison",
    "tipcflow_decide": "submit decision",
    "tipcflow_stop": "stop run",
    "trigger_dag_run": "start run",
}


def logged_actions(since: float, user: str, limit: int) -> list[AuditEntry]:
    """Return the newest actions since a time, of one user if `user` is not empty."""
    query = select(Log.dttm, Log.owner, Log.event, Log.dag_id, Log.run_id, Log.extra)
    query = query.where(Log.dttm >= datetime.fromtimestamp(since, UTC), Log.event.in_(_ACTIONS))
    if user:
        query = query.where(Log.owner == user)
    try:
        with create_session() as session:
            rows = session.execute(query.order_by(Log.dttm.desc()).limit(limit)).all()
    except SQLAlchemyError as error:
        _log.warning("cannot read Airflow's audit log: %s", error)
        return []
    return [
        AuditEntry(
            at=row.dttm.timestamp(),
            who=row.owner or "unknown",
            action=_ACTIONS[row.event],
            about=" ".join(filter(None, (row.dag_id, row.run_id))),
        )
        for row in rows
    ]
