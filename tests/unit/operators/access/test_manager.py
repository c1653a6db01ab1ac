"""The auth manager's own rule: who starts a DAG run needs not edit the DAG."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.providers.fab.auth_manager.fab_auth_manager import FabAuthManager

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow_operators.access.command import AUTH_MANAGER
from tipcflow_operators.access.manager import OWN_DAGS, RolesAuthManager
from tipcflow_operators.access.permissions import TABLE
from tipcflow_operators.airflow.internals import DagAccessEntity

USERS = {rights.role.value: SimpleNamespace(perms=list(rights.permissions)) for rights in TABLE}


@pytest.fixture
def manager() -> RolesAuthManager:
    return RolesAuthManager.__new__(RolesAuthManager)


def may(manager: Any, name: str, method: str, entity: DagAccessEntity | None, dag_id: str = "toy") -> bool:
    details = DagDetails(id=dag_id)
    return bool(manager.is_authorized_dag(method=method, access_entity=entity, details=details, user=USERS[name]))


def test_the_setting_names_the_class() -> None:
    assert f"{RolesAuthManager.__module__}.{RolesAuthManager.__name__}" == AUTH_MANAGER
    assert issubclass(RolesAuthManager, FabAuthManager)


def test_ci_starts_runs_and_does_not_edit_dags(manager: RolesAuthManager) -> None:
    assert may(manager, "ci", "POST", DagAccessEntity.RUN)
    assert may(manager, "ci", "GET", DagAccessEntity.TASK_LOGS)
    assert not may(manager, "ci", "PUT", None)
    assert not may(manager, "ci", "DELETE", None)
    for method in ("PUT", "DELETE"):
        assert not may(manager, "ci", method, DagAccessEntity.RUN)
    assert not may(manager, "ci", "POST", DagAccessEntity.XCOM)


@pytest.mark.parametrize("name", ["viewer", "approver"])
def test_readers_start_nothing(manager: RolesAuthManager, name: str) -> None:
    assert not may(manager, name, "POST", DagAccessEntity.RUN)
    assert may(manager, name, "GET", DagAccessEntity.RUN)


@pytest.mark.parametrize("dag_id", sorted(OWN_DAGS))
def test_dags_of_the_deployment_are_started_by_operators(manager: RolesAuthManager, dag_id: str) -> None:
    assert not may(manager, "ci", "POST", DagAccessEntity.RUN, dag_id)
    assert may(manager, "operator", "POST", DagAccessEntity.RUN, dag_id)
    assert may(manager, "ci", "GET", DagAccessEntity.RUN, dag_id)


def test_a_run_without_a_dag_is_not_started(manager: RolesAuthManager) -> None:
    user = USERS["ci"]
    assert not manager.is_authorized_dag(method="POST", access_entity=DagAccessEntity.RUN, user=user)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("viewer", set()),
        ("ci", set()),
        ("operator", {"decide_alert"}),
        ("approver", set(DECISION_DAGS)),
    ],
)
def test_decisions_require_the_role_of_their_action(
    manager: RolesAuthManager, name: str, allowed: set[str]
) -> None:
    started = {dag_id for dag_id in DECISION_DAGS if may(manager, name, "POST", DagAccessEntity.RUN, dag_id)}
    assert started == allowed


@pytest.mark.parametrize(
    ("path", "starts"),
    [
        ("/api/v2/dags/toy/dagRuns", ["ci", "operator"]),
        ("/api/v2/backfills", ["operator"]),
        ("/prefix/api/v2/backfills/dry_run", ["operator"]),
    ],
)
def test_backfills_require_permission_to_edit_the_dag(
    manager: RolesAuthManager, path: str, starts: list[str]
) -> None:
    found: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.extend(name for name in sorted(USERS) if may(manager, name, "POST", DagAccessEntity.RUN))

    (marker, options), *others = reversed(manager.get_fastapi_middlewares())
    assert (options, others) == ({}, [])
    asyncio.run(marker(app)({"type": "http", "path": path}, None, None))
    assert found == starts


def test_new_password_ends_tokens_and_a_new_login_works_at_once(
    manager: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = SimpleNamespace(id=7, password="pbkdf2:old")

    def kept_for_a_while(self: Any, token: dict[str, Any]) -> SimpleNamespace:
        return self.cache.setdefault(int(token["sub"]), SimpleNamespace(**vars(stored)))  # type: ignore[no-any-return]

    monkeypatch.setattr(FabAuthManager, "cache", {})
    monkeypatch.setattr(FabAuthManager, "deserialize_user", kept_for_a_while)
    old = manager.serialize_user(stored)
    assert "pbkdf2" not in str(old)
    assert manager.deserialize_user(old).id == 7
    stored.password = "pbkdf2:new"
    new = manager.serialize_user(stored)
    assert manager.deserialize_user(new).id == 7
    for token in (old, {"sub": "7"}):
        with pytest.raises(ValueError, match="new password"):
            manager.deserialize_user(token)
    stored.password = None
    assert manager.deserialize_user(manager.serialize_user(stored)).id == 7
