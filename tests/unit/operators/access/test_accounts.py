"""Roles and users in a real database of Airflow's FAB provider, stored again and again from a changing file."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

# The fixture takes 30 s alone, and minutes on a busy machine.
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(900)]
# Importing Airflow takes most of the time, so all steps are one process. Prints a JSON line per step.
SCRIPT = """
import json, os, sys
from importlib import import_module

sys.argv = ["airflow", "db", "migrate"]
import_module("airflow.__main__").main()
from tipcflow.config.access.users import Users, read_passwords
from tipcflow_operators.access.accounts import store_roles, store_users
from tipcflow_operators.airflow.internals import get_application_builder, providers_configuration_loaded

def step(manager, users, passwords):
    made = store_roles(manager) + store_users(manager, Users.model_validate({"users": users}), passwords)
    accounts = {
        account.username: [account.active, sorted(role.name for role in account.roles), account.get_full_name()]
        for account in manager.get_all_users()
    }
    log_in = lambda name: manager.auth_user_db(name, passwords[name], rotate_session_id=False)
    logins = list(filter(log_in, passwords))
    print("STEP", json.dumps([made, accounts, logins]))

@providers_configuration_loaded
def main():
    with get_application_builder() as builder:
        builder.add_permissions(update_perms=True)
        for users, passwords, surplus in json.loads(os.environ["STEPS"]):
            if surplus:
                role = builder.sm.find_role("tipcflow ci")
                builder.sm.add_permission_to_role(role, builder.sm.create_permission("can_delete", "DAGs"))
                builder.sm.add_user("carol", "c", "d", "c@d.example", role=role, password="of-another-login")
            step(builder.sm, users, passwords)

main()
"""
ROOT = {"roles": ["admin"], "password_env": "X"}
CI = {"roles": ["ci"], "password_env": "Y"}
WORDS = {"root": "correct-horse-battery", "ci": "staple-correct-horse"}
NEW = {"root": WORDS["root"], "ci": "another-long-word"}
MARK = "tipcflow roles file"
STEPS = [
    ({"root": ROOT, "ci": CI}, WORDS, False),
    ({"root": ROOT, "ci": CI}, WORDS, False),
    ({"root": ROOT, "ci": {**CI, "roles": ["viewer", "ci"], "name": "Nightly Build"}}, NEW, True),
    ({"root": ROOT}, {"root": WORDS["root"], "ci": NEW["ci"]}, False),
    ({"root": ROOT, "CI": CI}, NEW, False),
]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    home = tmp_path_factory.mktemp("home")
    own = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__AUTH_MANAGER": "tipcflow_operators.access.manager.RolesAuthManager",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "STEPS": json.dumps(STEPS),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TIPCFLOW"))}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=kept | own, capture_output=True, text=True, timeout=840)
    # The error first: of a flaky test, only the first line is reported.
    assert done.returncode == 0, "\n".join(
        [*done.stderr.splitlines()[-1:], done.stderr[-4000:], done.stdout[-2000:]]
    )
    assert not [word for word in (*WORDS.values(), NEW["ci"]) if word in done.stdout + done.stderr]
    return [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("STEP ")]


def test_users_are_created_and_log_in(steps: list[Any]) -> None:
    changes, accounts, logins = steps[0]
    assert accounts["ci"] == [True, ["tipcflow ci", MARK], "ci "]
    assert accounts["root"][:2] == [True, ["Admin", MARK]]
    assert logins == ["root", "ci"]
    assert changes[-2:] == ["user root: created with role admin", "user ci: created with role ci"]


def test_repetition_changes_nothing(steps: list[Any]) -> None:
    assert steps[1] == [[], steps[0][1], ["root", "ci"]]


def test_roles_names_and_passwords_change(steps: list[Any]) -> None:
    changes, accounts, logins = steps[2]
    assert changes == [
        "role tipcflow ci: 0 permissions added, 1 removed",
        "user ci: roles viewer, ci, name or email, new password",
    ]
    assert accounts["ci"] == [True, ["tipcflow ci", MARK, "tipcflow viewer"], "Nightly Build"]
    assert logins == ["root", "ci"]
    assert accounts["carol"] == [True, ["tipcflow ci"], "c d"], "of an admin, not of the file"


def test_a_removed_user_is_deactivated_and_comes_back(steps: list[Any]) -> None:
    changes, accounts, logins = steps[3]
    assert (changes, accounts["ci"][:2], logins) == (["user ci: deactivated"], [False, [MARK]], ["root"])
    changes, accounts, logins = steps[4]
    assert changes == ["user CI: role ci, activated, name or email"]
    assert accounts["ci"][:2] == [True, ["tipcflow ci", MARK]]
    assert accounts["carol"][0] is True
