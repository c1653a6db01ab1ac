"""Starts DAG runs for users, with Airflow's permission check."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from tipcflow_operators.airflow.internals import (
    DagAccessEntity,
    DBDagBag,
    GetUserDep,
    TriggerDAGRunPostBody,
    create_session,
    requires_access_dag,
    trigger_dag_run,
)


def may_trigger(request: Request, user: GetUserDep, dag_id: str) -> bool:
    """Whether the user may start runs of a DAG, by the check of Airflow's API."""
    try:
        requires_access_dag(method="POST", access_entity=DagAccessEntity.RUN, param_dag_id=dag_id)(request, user)
    except HTTPException:
        return False
    return True


def same_origin(request: Request) -> None:
    """A dependency of routes that change something: 403 for a form of another site.

    Browsers send the login's cookie with the forms of other sites on the same host, too. A bearer token is sent on
    purpose.
    """
    if request.headers.get("authorization"):
        return
    site = request.headers.get("sec-fetch-site")
    if site is None:  # browsers send it to https addresses and to this machine only
        origin = urlsplit(request.headers.get("origin", "")).netloc
        site = "same-origin" if origin and origin == request.headers.get("host") else "unknown"
    if site != "same-origin":
        raise HTTPException(403, "this form was sent by another site")


def trigger(request: Request, user: GetUserDep, dag_id: str, conf: Mapping[str, Any], *, note: str) -> str:
    """Start a run of a DAG as Airflow's API does; return its ID.

    Raises:
        HTTPException: Airflow has no such DAG, or refuses the params.
    """
    body = TriggerDAGRunPostBody(logical_date=None, conf=dict(conf), note=note)
    with create_session() as session:
        started: Any = trigger_dag_run(
            dag_id=dag_id, body=body, dag_bag=DBDagBag(), user=user, session=session, request=request
        )
        return str(started.run_id)
