"""The character NUL, which PostgreSQL refuses: an invalid request on every route, never an error of the server."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.support import postgres
from tests.support.page_routes import methods_and_templates

from tipcflow.store import Store

pytestmark = pytest.mark.process
EXPECTED = "found 'a\\x00', expected text without the character NUL"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A metrics database on PostgreSQL."""
    with postgres.running() as server:
        url = server.create()
        Store.open(url).close()
        yield url


@pytest.fixture
def client(machine: TestClient, url: str, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", url)
    return machine


@pytest.mark.parametrize(
    "name",
    [
        "suite",
        "text",
        "chain",
        "mode",
        "cluster",
        "environment",
        "build",
        "node",
        "run",
        "repository",
        "seen",
        "x",
    ],
)
@pytest.mark.parametrize(
    "page", ["", "runs", "today", "flaky", "nodes", "compare", "pulls", "api/runs", "api/audit"]
)
def test_nul_in_a_query_is_one_message(client: TestClient, page: str, name: str) -> None:
    response = client.get(f"/certification/{page}?{name}=a%00")
    assert (response.status_code, response.json()) == (422, {"detail": f"{name}: {EXPECTED}"})


def test_nul_in_the_path_or_query_of_each_route_is_refused(client: TestClient, page_app: FastAPI) -> None:
    paths = {path for method, path in methods_and_templates(page_app) if method == "GET"} - {"/metrics"}
    assert len(paths) > 40
    for path in sorted(paths):
        filled = path
        while "{" in filled:
            before, _, rest = filled.partition("{")
            filled = f"{before}a%00{rest.partition('}')[2]}"
        query = "" if filled != path else "?text=a%00"
        response = client.get(f"/certification{filled}{query}")
        assert (response.status_code, EXPECTED in response.json()["detail"]) == (422, True), path


def test_page_of_the_error_names_the_value(client: TestClient) -> None:
    response = client.get("/certification/runs?text=a%00", headers={"Accept": "text/html"})
    assert response.status_code == 422
    assert "expected text without the character NUL" in response.text


def test_nul_without_a_login_is_a_missing_login(anybody: TestClient) -> None:
    assert anybody.get("/certification/runs?text=a%00").status_code == 401
