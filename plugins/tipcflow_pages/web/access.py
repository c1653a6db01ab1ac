"""Access control: users who may read task logs may read the pages, by Airflow's login (cookie or bearer token)."""

from fastapi import HTTPException

from tipcflow_operators.airflow.internals import DagAccessEntity, GetUserDep, get_auth_manager


def may_read(user: GetUserDep) -> None:
    """A dependency of every route: 401 without a login, 403 for a user who may not read task logs."""
    allowed = get_auth_manager().is_authorized_dag(
        method="GET", access_entity=DagAccessEntity.TASK_LOGS, user=user
    )
    if not allowed:
        raise HTTPException(403, "these pages require permission to read task logs")


def login_url(next_url: str) -> str:
    """Return the URL of the login, which redirects to `next_url` afterwards."""
    return str(get_auth_manager().get_url_login(next_url=next_url))
