"""The one function that compares a user with roles, for each kind of auth manager."""

from typing import Any

import pytest

from tipcflow.config.access.roles import ACTIONS, Action, Role
from tipcflow_pages.web import access


class Ours:
    """An auth manager that knows the actions; the user is a role."""

    has_certification_roles = True

    def is_authorized_custom_view(self, *, method: str, resource_name: str, user: Role) -> bool:
        return method == "PUT" and resource_name in {action.resource for action in ACTIONS[user]}


class Another:
    """Airflow's simple one, in short: the user is the set of what may be edited."""

    def is_authorized_variable(self, *, method: str, user: set[str]) -> bool:
        return method == "PUT" and "variables" in user

    def is_authorized_dag(self, *, method: str, access_entity: Any, user: set[str]) -> bool:
        return method == "PUT" and access_entity.value in user


@pytest.mark.parametrize("role", list(Role))
def test_roles_have_their_actions(monkeypatch: pytest.MonkeyPatch, role: Role) -> None:
    monkeypatch.setattr(access, "get_auth_manager", Ours)
    assert {action for action in Action if access.may(role, action)} == ACTIONS[role]


def test_other_auth_managers_map_actions_to_their_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "get_auth_manager", Another)
    assert not any(access.may(set(), action) for action in Action)
    runs = {action for action in Action if access.may({"RUN"}, action)}
    assert runs == {Action.STOP, Action.STOP_OWN, Action.ALERTS}
    assert {action for action in Action if access.may({"variables"}, action)} == set(Action) - runs
