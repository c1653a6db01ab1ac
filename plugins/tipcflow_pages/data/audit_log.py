"""Requests of users in Airflow's audit log that concern runs and DAGs.

Airflow logs requests about tasks and backfills before it checks the permission: refused ones are listed, too.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from tipcflow.domain.alert.audit import AuditEntry
from tipcflow_operators.airflow.internals import Log, create_session

_log = logging.getLogger(__name__)
# Event, as the routes of Airflow and of these pages name them -> action in words.
ACTIONS = {
    "bulk_dag_runs": "change runs",
    "cancel_backfill": "cancel backfill",
    "clear_dag_run": "clear run",
    "clear_dag_run_partitions": "clear partitions of runs",
    "clear_dag_runs": "clear runs",
    "create_backfill": "start backfill",
    "delete_dag": "delete DAG",
    "delete_dag_run": "delete run",
    "patch_dag": "pause or unpause DAG",
    "patch_dag_run": "annotate run",
    "patch_dags": "pause or unpause DAGs",
    "patch_task_group_instances": "mark tasks of a group",
    "patch_task_instance": "mark task",
    "pause_backfill": "pause backfill",
    "post_clear_task_instances": "clear tasks",
    "tipcflow_ab": "start A/B comparison",
    "tipcflow_decide": "submit decision",
    "tipcflow_stop": "stop run",
    "trigger_dag_run": "start run",
    "unpause_backfill": "unpause backfill",
}
_STATES = ("failed", "queued", "success")
# Airflow logs these requests even if they change nothing.
_WITH_DRY_RUN = ("clear_dag_run_partitions", "clear_dag_runs")


class _Entity(BaseModel):
    dag_run_id: str
    dag_id: str | None = None
    state: str | None = None


class _BulkAction(BaseModel):
    action: str
    entities: tuple[_Entity | str, ...]


class _Request(BaseModel):
    """Body and query of a logged request; Airflow has not validated all of them."""

    actions: tuple[_BulkAction, ...] = ()
    backfill_id: str = ""
    dag_id_pattern: str = ""
    dag_runs: tuple[_Entity, ...] = ()
    dry_run: bool = True
    group_id: str = ""
    new_state: str | None = None
    state: str | None = None


def logged_actions(since: float, user: str, limit: int) -> list[AuditEntry]:
    """Return the newest actions since a time, of one user if `user` is not empty; one per run of a bulk request.

    Args:
        limit: of logged requests.
    """
    query = select(Log.dttm, Log.owner, Log.event, Log.dag_id, Log.run_id, Log.task_id, Log.extra)
    query = query.where(Log.dttm >= datetime.fromtimestamp(since, UTC), Log.event.in_(ACTIONS))
    if user:
        query = query.where(Log.owner == user)
    try:
        with create_session() as session:
            rows = session.execute(query.order_by(Log.dttm.desc()).limit(limit)).all()
    except SQLAlchemyError as error:
        _log.warning("cannot read Airflow's audit log: %s", error)
        return []
    return [entry for row in rows for entry in _entries(row)]


def _entries(row: Any) -> Iterator[AuditEntry]:
    try:
        request = _Request.model_validate_json(row.extra or "{}")
    except ValidationError:
        request = _Request()
    if row.event in _WITH_DRY_RUN and request.dry_run:
        return
    dag = row.dag_id if row.dag_id != "~" else None
    text = " ".join(filter(None, (row.task_id or request.group_id, request.new_state)))
    for action, run in _changes(row, request):
        names = (run.dag_id or dag, run.dag_run_id) if run else (dag, row.run_id)
        about = " ".join(filter(None, names)) or request.dag_id_pattern
        about = about or (f"backfill {request.backfill_id}" if request.backfill_id else "")
        yield AuditEntry(
            at=row.dttm.timestamp(), who=row.owner or "unknown", action=action, about=about, text=text
        )


def _changes(row: Any, request: _Request) -> Iterator[tuple[str, _Entity | None]]:
    """Yield (action, run) per run of a bulk request; (action, None) of other requests."""
    if row.event == "patch_dag_run":
        yield _marked(request.state), None
    elif row.event == "bulk_dag_runs" and request.actions:
        for bulk in request.actions:
            for entity in bulk.entities:
                run = _Entity(dag_run_id=entity) if isinstance(entity, str) else entity
                yield "delete run" if bulk.action == "delete" else _marked(run.state), run
    elif row.event == "clear_dag_runs" and request.dag_runs:
        yield from ((ACTIONS["clear_dag_run"], run) for run in request.dag_runs)
    else:
        yield ACTIONS[row.event], None


def _marked(state: str | None) -> str:
    return f"mark run {state}" if state in _STATES else ACTIONS["patch_dag_run"]
