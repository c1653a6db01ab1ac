"""Routes that change something: checks, and their order."""

from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute

from tipcflow.config.access.roles import Action
from tipcflow_pages import start_ab
from tipcflow_pages.actions import decide, stop
from tipcflow_pages.web.trigger import same_origin

ROUTES = [
    route
    for router in (stop.router, start_ab.router, decide.router)
    for route in router.routes
    if isinstance(route, APIRoute) and route.methods != {"GET"}
]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_role_origin_and_audit_log_are_checked_in_this_order(route: APIRoute) -> None:
    calls: list[Any] = [dependency.dependency for dependency in route.dependencies]
    assert len(calls) == 3, "role, origin, audit log"
    assert calls[1] is same_origin
    assert calls[2].__qualname__ == "action_logging.<locals>.log_action"


@pytest.mark.parametrize(
    ("actions", "owner", "expected"),
    [
        ({Action.STOP}, "bob", True),
        ({Action.STOP_OWN}, "alice", True),
        ({Action.STOP_OWN}, "bob", False),
        ({Action.STOP_OWN}, "", False),
        (set(), "alice", False),
    ],
)
def test_users_stop_their_own_runs(
    monkeypatch: pytest.MonkeyPatch, actions: set[Action], owner: str, expected: bool
) -> None:
    monkeypatch.setattr(stop, "may", lambda user, action: action in actions)
    assert stop.can_stop(SimpleNamespace(get_name=lambda: "alice"), owner) is expected
