"""The auth manager of a deployment with roles: that of Airflow's FAB provider, where starting a run needs less.

`AIRFLOW__CORE__AUTH_MANAGER=tipcflow_operators.access.manager.RolesAuthManager`
"""

import hashlib
from contextvars import ContextVar
from typing import Any

from airflow.providers.fab.auth_manager.fab_auth_manager import FabAuthManager

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow_operators.access.permissions import Resource
from tipcflow_operators.airflow.internals import DagAccessEntity

# DAGs that run the deployment, not a chain on request: only users who may edit DAGs start or backfill them.
OWN_DAGS = frozenset({"confirm", "maintenance", "pull_request", "weekly"})
# Claim of a token: a hash of the stored hash of the password, which is salted.
_PASSWORD = "password"  # noqa: S105
_BACKFILLS = "/api/v2/backfills"
_of_backfills: ContextVar[bool] = ContextVar("of_backfills", default=False)


class BackfillMarker:
    """ASGI middleware that marks requests about backfills.

    Airflow authorizes the creation of a backfill by the same arguments as the start of one DAG run.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Mark the request, and handle it."""
        _of_backfills.set(_BACKFILLS in scope.get("path", ""))
        await self._app(scope, receive, send)


class RolesAuthManager(FabAuthManager):
    """FAB's auth manager, except that starting a DAG run requires no permission to edit the DAG, and that a new
    password of a user ends the tokens of the old one.

    In FAB's, a login of a CI system may also pause and unpause the DAG, and a browser keeps its token for a day.
    """

    # For pages: this auth manager knows the actions of tipcflow.config.access.roles.
    has_certification_roles = True

    def get_fastapi_middlewares(self) -> list[tuple[Any, dict[str, Any]]]:
        """Add the marker of requests about backfills."""
        return [*super().get_fastapi_middlewares(), (BackfillMarker, {})]

    def serialize_user(self, user: Any) -> dict[str, Any]:
        """Return the claims of a user's token, which name the password."""
        return {**super().serialize_user(user), _PASSWORD: _password_of(user)}

    def deserialize_user(self, token: dict[str, Any]) -> Any:  # type: ignore[override]  # FAB's has a cache
        """Return the user of a token; FAB keeps users for 30 seconds.

        Raises:
            ValueError: the user does not exist, is not active, or has a password that is newer than the token.
        """
        user = super().deserialize_user(token)
        if _password_of(user) != token.get(_PASSWORD):
            # A new login must not wait until FAB forgets the user with the old password.
            self.cache.pop(int(token["sub"]), None)
            user = super().deserialize_user(token)
            if _password_of(user) != token.get(_PASSWORD):
                raise ValueError(f"User with id {token['sub']} has a new password")
        return user

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        """Whether a user may do something with a DAG or a part of it."""
        dag_id = getattr(details, "id", None)
        if method == "POST" and access_entity is DagAccessEntity.RUN and dag_id in DECISION_DAGS:
            resource = DECISION_DAGS[dag_id].resource
            return bool(self.is_authorized_custom_view(method="PUT", resource_name=resource, user=user))
        if method != "POST" or access_entity is not DagAccessEntity.RUN or dag_id in OWN_DAGS:
            return super().is_authorized_dag(
                method=method, user=user, access_entity=access_entity, details=details
            )
        if not dag_id or _of_backfills.get():
            # FAB's auth manager accepts a run of no DAG. A backfill may also run again what has ended.
            return bool(self.is_authorized_custom_view(method="PUT", resource_name=Resource.DAGS, user=user))
        may_start = self.is_authorized_custom_view(method="POST", resource_name=Resource.DAG_RUNS, user=user)
        return bool(may_start and super().is_authorized_dag(method="GET", user=user, details=details))


def _password_of(user: Any) -> str:
    """Return a hash of the stored password of a user, which may be empty for users of LDAP and OAuth."""
    return hashlib.sha256((getattr(user, "password", "") or "").encode()).hexdigest()[:32]
