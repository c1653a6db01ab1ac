"""Who may read the pages: whoever may read task logs, by Airflow's own login (cookie or bearer token)."""

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import HTTPException


def may_read(user: GetUserDep) -> None:
    """A dependency of every route: 401 without a login, 403 for a user who may not read task logs."""
    allowed = get_auth_manager().is_authorized_dag(
        method="GET", access_entity=DagAccessEntity.TASK_LOGS, user=user
    )
    if not allowed:
        raise HTTPException(403, "you may not read task logs, and so not these pages")


def login_url(next_url: str) -> str:
    """Where a browser logs in; afterwards it comes back to `next_url`."""
    return str(get_auth_manager().get_url_login(next_url=next_url))
