"""Assets, security headers, and errors as HTML for browsers and as JSON for other clients."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.testclient import TestClient

from tipcflow.domain import InfraError
from tipcflow_pages.web import assets
from tipcflow_pages.web.errors import handlers
from tipcflow_pages.web.render import HEADERS, html

HTML = {"accept": "text/html"}


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI(exception_handlers=handlers())
    app.include_router(assets.router)

    @app.get("/page")
    def page(request: Request) -> object:
        return html(request, "trouble.html", title="<b>", message="a < b \ud800", hint="")

    @app.get("/refused")
    def refused() -> None:
        raise HTTPException(403, "not for you <script>")

    @app.get("/away")
    def away() -> None:
        raise InfraError("the database is away", hint="start it")

    @app.get("/defect")
    def defect() -> None:
        raise ZeroDivisionError("a secret of the code")

    @app.get("/number")
    def number(value: int) -> int:
        return value

    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_page_is_escaped_and_has_the_security_headers(client: TestClient) -> None:
    response = client.get("/page")
    assert response.status_code == 200
    assert "a &lt; b" in response.text
    assert "<b>" not in response.text
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert "script-src 'self'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/refused", 403, "not for you <script>"),
        ("/away", 503, "the database is away"),
        ("/defect", 500, "ZeroDivisionError while rendering the page; see the api-server's log"),
        ("/number?value=x", 422, "value: "),
        ("/none", 404, "Not Found"),
    ],
)
def test_error_is_json_for_a_client_and_a_page_for_a_browser(
    client: TestClient, path: str, status: int, detail: str
) -> None:
    report = client.get(path)
    assert report.status_code == status
    assert report.json()["detail"].startswith(detail)
    page = client.get(path, headers=HTML)
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")
    assert "<script>" not in page.text
    for response in (report, page):
        assert "a secret of the code" not in response.text
        assert "Traceback" not in response.text


def test_hint_of_an_error_is_shown(client: TestClient) -> None:
    assert client.get("/away").json()["hint"] == "start it"
    assert "start it" in client.get("/away", headers=HTML).text


@pytest.mark.parametrize(("name", "media_type"), [("app.css", "text/css"), ("app.js", "text/javascript")])
def test_asset_is_revalidated_by_its_content(client: TestClient, name: str, media_type: str) -> None:
    response = client.get(f"/assets/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(media_type)
    again = client.get(f"/assets/{name}", headers={"if-none-match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["none.js", "..%2Fweb%2Frender.py", "render.py", ".."])
def test_other_files_are_not_served(client: TestClient, name: str) -> None:
    assert client.get(f"/assets/{name}").status_code == 404


def test_uplot_is_the_recorded_version(client: TestClient) -> None:
    """An edited or exchanged library is noticed: it has the hash that its README records."""
    recorded = (Path(assets.__file__).parents[1] / "static" / "uplot" / "README.md").read_text()
    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        content = client.get(f"/assets/{name}").content
        assert f"| {name} | {hashlib.sha256(content).hexdigest()} |" in recorded
        assert len(content) < 60_000
