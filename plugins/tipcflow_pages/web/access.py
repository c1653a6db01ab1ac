"""Access control: users who may read task logs may read the pages, by Airflow's login (cookie or bearer token).

The only place where pages compare a user with the roles of `tipcflow.config.access.roles`.
"""

from typing import Any

from fastapi import HTTPException

from tipcflow.config.access.roles import DECISIONS, Action
from tipcflow_operators.airflow.internals import DagAccessEntity, GetUserDep, get_auth_manager


def may_read(user: GetUserDep) -> None:
    """A dependency of every route: 401 without a login, 403 for a user who may not read task logs."""
    allowed = get_auth_manager().is_authorized_dag(
        method="GET", access_entity=DagAccessEntity.TASK_LOGS, user=user
    )
    if not allowed:
        raise HTTPException(403, "these pages require permission to read task logs")


def may(user: Any, action: Action) -> bool:
    """Whether a user may do an action of the pages.

    Airflow's other auth managers do not know the actions: there, decisions require the permission to edit
    variables (role `op` of the simple auth manager), and the rest that to edit DAG runs (role `user`).
    """
    manager: Any = get_auth_manager()
    if getattr(manager, "has_certification_roles", False):
        return bool(manager.is_authorized_custom_view(method="PUT", resource_name=action.resource, user=user))
    if action in DECISIONS:
        return bool(manager.is_authorized_variable(method="PUT", user=user))
    return bool(manager.is_authorized_dag(method="PUT", access_entity=DagAccessEntity.RUN, user=user))


def login_url(next_url: str) -> str:
    """Return the URL of the login, which redirects to `next_url` afterwards."""
    return str(get_auth_manager().get_url_login(next_url=next_url))
