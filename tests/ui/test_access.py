"""No route responds without a login; cookie and bearer token both open all routes."""

import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.routing import Route
from tests.support.stories import record_run

from tipcflow.store import Store
from tipcflow_pages import metrics

PREFIX = "/certification"


def requested(app: FastAPI) -> list[tuple[str, str]]:
    """(method, path) of all routes of the app, with values filled in for the parameters."""
    found = []
    for route in app.routes:
        assert isinstance(route, Route), f"{route!r} would not ask for the login"
        path = re.sub(r"\{[^}]*\}", "latest", route.path)
        found += [(method, PREFIX + path) for method in sorted(route.methods or ())]
    return found


def test_every_route_requires_the_login(page_app: FastAPI, anybody: TestClient, store: Store) -> None:
    record_run(store)
    every = requested(page_app)
    assert len(every) > 10
    answers = {(method, path): anybody.request(method, path).status_code for method, path in every}
    assert set(answers.values()) == {401}, answers


@pytest.mark.parametrize(
    "path", ["/docs", "/redoc", "/openapi.json", "/assets/app.css", "/nowhere", "/api/x", "/"]
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_missing_pages_require_a_login(anybody: TestClient, home: Path, method: str, path: str) -> None:
    assert anybody.request(method, PREFIX + path).status_code == 401


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer ", "Basic YTpi", "nonsense"])
def test_a_wrong_token_opens_nothing(anybody: TestClient, home: Path, header: str) -> None:
    response = anybody.get(f"{PREFIX}/api/runs", headers={"Authorization": header})
    assert response.status_code in (401, 403)
    assert "runs" not in response.text


def test_cookie_and_token_are_accepted(browser: TestClient, machine: TestClient, store: Store) -> None:
    run = record_run(store)
    for client in (browser, machine):
        assert client.get(f"{PREFIX}/").status_code == 200
        assert client.get(f"{PREFIX}/api/runs/{run.id}").json()["run"]["id"] == run.id


def test_a_browser_is_sent_to_the_login(anybody: TestClient, home: Path) -> None:
    response = anybody.get(f"{PREFIX}/runs?status=failed", headers={"Accept": "text/html"})
    assert response.status_code == 401
    assert 'url=/auth/login?next=%2Fcertification%2Fruns%3Fstatus%3Dfailed"' in response.text


def test_the_webhook_requires_a_signature_instead_of_a_login(anybody: TestClient, home: Path) -> None:
    response = anybody.post(f"{PREFIX}/webhook/github", json={})
    assert (response.status_code, response.json()["cause"]) == (400, "headers")
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958"}
    response = anybody.post(f"{PREFIX}/webhook/github", json={}, headers=headers)
    assert (response.status_code, response.json()["cause"]) == (401, "signature")
    assert anybody.post(f"{PREFIX}/webhook/../api/runs", json={}).status_code in (401, 404, 405)
    assert anybody.get(f"{PREFIX}/webhook/api/runs").status_code == 404


def test_the_metrics_require_a_token_instead_of_a_login(
    anybody: TestClient, machine: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_run(store)
    path = f"{PREFIX}/metrics"
    monkeypatch.setenv("AIRFLOW_CONN_TIPCFLOW_METRICS", "generic://:secret-word@")
    metrics.forget_token()
    assert anybody.get(path).status_code == 401
    # A login of Airflow is not the token, and the token opens nothing else.
    assert machine.get(path).status_code == 401
    token = {"Authorization": "Bearer secret-word"}
    response = anybody.get(path, headers=token)
    assert response.status_code == 200, response.text
    assert 'tipcflow_runs{status="pass"} ' in response.text
    assert anybody.get(f"{PREFIX}/api/runs", headers=token).status_code in (401, 403)
    for method in ("POST", "DELETE"):
        assert anybody.request(method, path, headers=token).status_code in (401, 403, 405)
