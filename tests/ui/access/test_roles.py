"""Roles of users on Airflow's real api-server, with its real FAB provider on PostgreSQL."""

import json
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support import postgres
from tests.support.certify import wait_for
from tests.ui import server
from tests.ui.access import roles, routes
from tests.ui.html_text import read

from tipcflow.airflow_api import Airflow, RunState
from tipcflow.domain import ConfigError
from tipcflow.store import Store

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(900)]
DAGS = """
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

for name in ("toy", "maintenance"):
    with DAG(name, schedule=None):
        EmptyOperator(task_id="one")
"""
SET_UP = """
import os, sys
from importlib import import_module
from pathlib import Path
main = import_module("airflow.__main__").main
for words in (["db", "migrate"], ["dags", "reserialize"]):
    sys.argv = ["airflow", *words]
    main()
from tipcflow_operators.access.command import main as store_access
for _ in range(2):
    assert store_access(Path(os.environ["TIPCFLOW_ROLES"])) == 0
from datetime import UTC, datetime
from airflow.models.backfill import Backfill
from airflow.utils.session import create_session
from tests.ui.access.routes import write
with create_session() as session:
    ended = datetime(2026, 1, 1, tzinfo=UTC)
    session.add(Backfill(dag_id="toy", from_date=ended, to_date=ended, completed_at=ended))
write(Path(os.environ["AIRFLOW_HOME"]))
"""
# FAB keeps a user for this time.
CACHE_S = 30
# Every login: user and role have one name.
PASSWORDS = {name: secrets.token_hex(16) for name in (*roles.LOGINS, "ci2", "viewer2")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.ApiServer]:
    folder, home = tmp_path_factory.mktemp("airflow") / "home", tmp_path_factory.mktemp("home")
    Store.open(f"sqlite:///{home / 'tipcflow.db'}").close()
    (folder / "dags").mkdir(parents=True)
    (folder / "dags/toy.py").write_text(DAGS)
    with postgres.running() as database:
        url = database.create().replace("postgresql:", "postgresql+psycopg2:")
        more = {
            "AIRFLOW__CORE__AUTH_MANAGER": "tipcflow_operators.access.manager.RolesAuthManager",
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
            "TIPCFLOW_ROLES": str(roles_file(home)),
        }
        with server.running(folder, home, more, SET_UP) as running:
            yield running


def roles_file(home: Path) -> Path:
    users = {}
    for name, password in PASSWORDS.items():
        (home / f"{name}_password").write_text(password + "\n")
        users[name] = {"roles": [name.rstrip("2")], "password_file": f"{name}_password"}
    path = home / "roles.yaml"
    path.write_text(json.dumps({"users": users}))
    return path


@pytest.fixture(scope="module")
def tokens(served: server.ApiServer) -> dict[str, str]:
    return {name: served.token(name, password) for name, password in PASSWORDS.items()}


@pytest.fixture(scope="module")
def runs(served: server.ApiServer, tokens: dict[str, str]) -> dict[str, str]:
    """DAG runs of `ci` and `admin`."""
    made = {"run": "ci", "other": "admin"}
    for name, login in made.items():
        body = {"dag_run_id": name, "logical_date": None, "conf": {}}
        asked(served, "POST", "/api/v2/dags/toy/dagRuns", tokens[login], body)
    return {name: name for name in made}


def asked(served: server.ApiServer, method: str, path: str, token: str, body: Any = None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.request(method, f"{served.url}{path}", json=body, headers=headers, timeout=60)


def logged_in(client: httpx.Client, login: str, password: str) -> bool:
    """Send the form of the login, as a browser does; returns whether FAB accepts the password."""
    token = re.findall(r'name="csrf_token"[^>]*value="([^"]+)"', client.get("/auth/login/").text)[0]
    form = {"username": login, "password": password, "csrf_token": token}
    client.headers["X-CSRFToken"] = token
    return client.post("/auth/login/", data=form).headers["location"] == "/auth/"


def test_every_role_may_do_its_part(
    served: server.ApiServer, tokens: dict[str, str], runs: dict[str, str]
) -> None:
    """One test, because the requests change Airflow: those that are refused come first in each row."""
    differing = {}
    for row in roles.TABLE:
        path = row.path.format(**runs)
        body = json.loads(json.dumps(row.body).replace("{run}", "run"))
        found = [asked(served, row.method, path, tokens[name], body) for name in roles.LOGINS]
        statuses = " ".join(str(response.status_code) for response in found)
        if statuses != row.statuses:
            differing[row.method, row.path] = (statuses, row.statuses, found[-1].text[:300])
    assert differing == {}


@pytest.fixture(scope="module")
def known(served: server.ApiServer, tokens: dict[str, str], runs: dict[str, str]) -> dict[str, str]:
    """Names in paths of routes -> names of things that exist."""
    with Airflow(served.url, token=tokens["admin"]) as admin:
        run = admin.dag_run("toy", "other").run
    return {
        "dag_id": "toy",
        "dag_run_id": "other",
        "run_id": run,
        "task_id": "one",
        "map_index": "-1",
        "backfill_id": "1",
        "pool_name": "default_pool",
        "file_token": asked(served, "GET", "/api/v2/dags/toy", tokens["admin"]).json()["file_token"],
        "username": "admin",
        "name": "Admin",
        # Airflow checks the permission before these exist.
        **dict.fromkeys(("asset_id", "connection_id", "group_id", "key", "pk", "variable_key", "xcom_key"), "1"),
        # Of routes for tasks, which accept no token of a user.
        **dict.fromkeys(("task_instance_id", "slot"), "1"),
    }


@pytest.mark.parametrize(("login", "allowed"), [("viewer", routes.FOR_ALL), ("ci", routes.FOR_CI)])
def test_other_routes_refuse_readers_and_ci(
    served: server.ApiServer,
    tokens: dict[str, str],
    known: dict[str, str],
    login: str,
    allowed: dict[routes.Key, str],
) -> None:
    keys = routes.read(served.log.parent, "api")
    assert [key for key in allowed if key not in keys] == []
    rest = [key for key in keys if key not in allowed and key.path != routes.NOTHING]
    found = {
        (request.key.method, request.path): asked(
            served, request.key.method, request.path, tokens[login], request.body
        )
        for request in routes.requests(rest, known)
    }
    assert {call: one.text[:200] for call, one in found.items() if one.status_code != 403} == {}


@pytest.mark.parametrize(("login", "allowed"), [("viewer", routes.OWN_FORMS), ("ci", {})])
def test_forms_of_users_and_roles_refuse_readers_and_ci(
    served: server.ApiServer, known: dict[str, str], login: str, allowed: dict[routes.Key, str]
) -> None:
    """FAB sends a user without the permission to the page of the login, and from an action to the view."""
    keys = routes.read(served.log.parent, "forms")
    assert [key for key in [*allowed, *routes.LOGINS] if key not in keys] == []
    rest = [request for request in routes.forms(served.log.parent, known) if request.key not in allowed]
    assert {"copyrole", "resetpasswords"} <= {request.body.get("action") for request in rest}
    with httpx.Client(base_url=served.url, timeout=60) as client:
        assert logged_in(client, login, PASSWORDS[login])
        found = [(request, client.post(request.path, data=request.body)) for request in rest]
        # The session works: a page that the login may see.
        own = client.get("/auth/resetmypassword/form")
        assert (own.status_code == 200) == bool(allowed)
    kinds = [(request, one.status_code, one.headers.get("location", "")) for request, one in found]
    # An action that only opens a form of the user's own changes nothing.
    own_forms = {key.path for key in allowed}
    refused = [
        status in (401, 403) or "/auth/login/" in place or (bool(request.body) and place in {".", *own_forms})
        for request, status, place in kinds
    ]
    others = [kind for kind, is_refused in zip(kinds, refused, strict=True) if not is_refused]
    assert others == []


def test_ci_stops_its_own_runs_only(served: server.ApiServer, tokens: dict[str, str]) -> None:
    with Airflow(served.url, token=tokens["ci"]) as ci, Airflow(served.url, token=tokens["ci2"]) as other:
        ci.trigger("toy", {}, "own")
        other.trigger("toy", {}, "others")
        ci.stop("toy", "own")
        assert ci.dag_run("toy", "own").state is RunState.FAILED
        with pytest.raises(ConfigError, match="stopping a run of ci2 requires the role operator"):
            ci.stop("toy", "others")
        assert ci.dag_run("toy", "others").state is RunState.QUEUED
        with pytest.raises(ConfigError, match="the run has ended"):
            ci.stop("toy", "own")
        with pytest.raises(ConfigError, match="has no run nothing"):
            ci.stop("toy", "nothing")
    with Airflow(served.url, token=tokens["operator"]) as operator:
        operator.stop("toy", "others")
        assert operator.dag_run("toy", "others").state is RunState.FAILED


def test_audit_names_the_user_of_a_marked_run(served: server.ApiServer, tokens: dict[str, str]) -> None:
    with Airflow(served.url, token=tokens["ci"]) as ci:
        for name in ("single", "bulk"):
            ci.trigger("toy", {}, name)
    entity = {"dag_id": "toy", "dag_run_id": "bulk", "state": "failed"}
    body = {"actions": [{"action": "update", "entities": [entity]}]}
    asked(served, "PATCH", "/api/v2/dags/~/dagRuns", tokens["operator"], body).raise_for_status()
    with Airflow(served.url, token=tokens["operator"]) as operator:
        operator.set_state("toy", "single", "failed")
        assert operator.dag_run("toy", "bulk").state is RunState.FAILED
        assert operator.stopped_by("toy", "single") == operator.stopped_by("toy", "bulk") == "operator"
        assert operator.stopped_by("toy", "another") == ""
    page = read(asked(served, "GET", "/certification/audit", tokens["viewer"]).text)
    assert "operator mark run failed toy single" in page.text
    assert "operator mark run failed toy bulk" in page.text


def test_new_password_ends_the_logins_of_browsers(served: server.ApiServer) -> None:
    """The steps of docs/operations.md: replace the content of the password file, then `tipcflow access apply`."""
    old, new = PASSWORDS["viewer2"], secrets.token_hex(16)
    pages = ("/auth/resetmypassword/form", "/certification/api/runs", "/api/v2/dags")
    with httpx.Client(base_url=served.url, timeout=60) as browser:
        assert logged_in(browser, "viewer2", old)
        # The page after the login sets the cookie with a token for the other pages.
        browser.get("/auth/", follow_redirects=True)
        assert [browser.get(page).status_code for page in pages] == [200, 200, 200]
        token = served.token("viewer2", old)
        file = Path(served.environment["TIPCFLOW_ROLES"])
        (file.parent / "viewer2_password").write_text(new)
        PASSWORDS["viewer2"] = new
        tipcflow = Path(sys.executable).with_name("tipcflow")
        done = subprocess.run(
            [tipcflow, "access", "apply"],
            env=served.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert "user viewer2: new password" in done.stdout.splitlines()
        assert browser.get(pages[0]).status_code == 302
        wait_for(
            lambda: browser.get(pages[1]).status_code == 401, what="the end of the login", seconds=CACHE_S + 10
        )
        assert browser.get(pages[2]).status_code == 401
        assert asked(served, "GET", pages[2], token).status_code == 403
    with httpx.Client(base_url=served.url, timeout=60) as browser:
        assert not logged_in(browser, "viewer2", old)
        assert logged_in(browser, "viewer2", new)
        browser.get("/auth/", follow_redirects=True)
        assert [browser.get(page).status_code for page in pages] == [200, 200, 200]
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        served.token("viewer2", old)


@pytest.mark.parametrize("password", ["", "wrong", "admin"])
def test_a_wrong_password_is_refused(served: server.ApiServer, password: str) -> None:
    with pytest.raises(httpx.HTTPStatusError, match=r"40[01]"):
        served.token("admin", password)


def test_no_password_is_in_the_log(served: server.ApiServer, tokens: dict[str, str]) -> None:
    text = served.log.read_text()
    assert not [name for name, password in PASSWORDS.items() if password in text]
