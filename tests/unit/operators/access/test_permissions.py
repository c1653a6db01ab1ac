"""The table of permissions, and its names in Airflow's FAB provider."""

import pytest
from airflow.providers.fab.www.security import permissions as fab
from pydantic import ValidationError

from tipcflow.config.access.roles import Action, Role
from tipcflow_operators.access.permissions import TABLE, Resource, Rights, Verb, role_name

ASSETS = {"Assets", "Asset Aliases"}  # of the provider common-compat


def test_airflow_knows_all_names() -> None:
    known = {value for name, value in vars(fab).items() if name.startswith("RESOURCE_") and isinstance(value, str)}
    assert {resource.value for resource in Resource} - known - ASSETS == set()
    actions = {value for name, value in vars(fab).items() if name.startswith("ACTION_CAN")}
    assert {verb.value for verb in Verb} <= actions


def test_every_role_but_admin_has_a_row() -> None:
    assert [rights.role for rights in TABLE] == [role for role in Role if role is not Role.ADMIN]
    assert role_name(Role.ADMIN) == "Admin"


def test_only_admin_deletes() -> None:
    with pytest.raises(ValidationError, match="role ci may delete DAGs, which only Admin may"):
        Rights(role=Role.CI, airflow=((Verb.DELETE, Resource.DAGS),))


def test_ci_only_reads_and_starts() -> None:
    (ci,) = [rights for rights in TABLE if rights.role is Role.CI]
    changing = {pair for pair in ci.permissions if pair[0] not in ("can_read", "menu_access")}
    assert changing == {("can_create", "DAG Runs"), ("can_edit", Action.STOP_OWN.resource)}
