"""Every kind of request of the client against GitHub's own OpenAPI description, served by prism."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from github import Auth, Github, GithubException
from tests.support.github.tls import make_certificate

from tipcflow.config.repository import Repository
from tipcflow.domain import TipcflowError
from tipcflow.github.client import Client
from tipcflow.github.client.app import App
from tipcflow.github.client.connect import api, connect
from tipcflow.github.report import Action, Annotation, CheckRun, Conclusion, Issue, IssueNote

pytestmark = [pytest.mark.full, pytest.mark.slow]

# A folder in which `npm install @stoplight/prism-cli @octokit/openapi` was run.
PRISM = "TIPC_PRISM"
_START_S = 90.0
_DESCRIPTION = Path("node_modules/@octokit/openapi/generated/api.github.com.json")
_COMMAND = Path("node_modules/.bin/prism")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of prism, which refuses what the description does not allow."""
    folder = Path(os.environ.get(PRISM, ""))
    if not os.environ.get(PRISM) or not (folder / _DESCRIPTION).is_file() or not shutil.which("node"):
        pytest.skip("TIPC_PRISM names no folder with @stoplight/prism-cli and @octokit/openapi")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log = tmp_path_factory.mktemp("prism") / "log"
    command = ["node", str(folder / _COMMAND), "mock", "-p", str(port), str(folder / _DESCRIPTION)]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as server:
        try:
            _wait(url, server, log)
            yield url
        finally:
            server.terminate()


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and server.poll() is None:
        try:
            httpx.get(f"{url}/meta", timeout=10)
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"prism does not start: {log.read_text()[-2000:]}")


@pytest.fixture
def github(url: str) -> Github:
    return api(url, Auth.Token("token"), between_writes_s=0)


@pytest.fixture
def repository(url: str) -> Repository:
    own = Repository(name="o/r", connection="app", suite="toy", cluster="two")
    # Files must have an https address.
    return own.model_copy(update={"api_url": url})


@pytest.fixture
def client(github: Github, repository: Repository) -> Client:
    return Client(github, repository)


@pytest.fixture
def app(github: Github) -> App:
    return App(github)


def check(annotations: int, conclusion: Conclusion | None) -> CheckRun:
    lines = tuple(Annotation("f.txt", number + 1, "failure", "t", f"m{number}") for number in range(annotations))
    actions = (Action("Re-run", "Runs all chains again", "rerun"),)
    status = "completed" if conclusion else "in_progress"
    url = "https://airflow.example.org/certification/runs/r"
    return CheckRun("tipcflow", "a" * 40, "2/1", status, conclusion, "title", "text", lines, actions, url)  # type: ignore[arg-type]


@pytest.mark.parametrize("conclusion", [None, *Conclusion])
def test_github_accepts_every_check_run(client: Client, conclusion: Conclusion | None) -> None:
    """120 annotations: one creation, and two updates."""
    assert client.publish(check(120, conclusion)) > 0


def test_github_accepts_comments_and_reactions(client: Client) -> None:
    assert client.comment(2, "<!-- marker -->", "<!-- marker -->\ntext") > 0
    client.react(3, "eyes")
    client.react(3, "+1")
    client.react(3, "-1")


def test_github_accepts_an_edit_of_the_comment(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "own_comment", lambda number, marker: {"id": 5, "body": "old"})
    assert client.comment(2, "<!-- marker -->", "<!-- marker -->\nnew") == 5
    with pytest.raises(TipcflowError, match="422"):
        client._send("PATCH", "/repos/o/r/issues/comments/5", {"text": "new"})


def test_github_accepts_issues_with_their_states(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = (
        IssueNote(marker="<!-- 1 -->", text="<!-- 1 -->\nclosed", state="closed", reason="not_planned"),
        IssueNote(marker="<!-- 2 -->", text="<!-- 2 -->\nopen", state="open"),
        IssueNote(marker="<!-- 3 -->", text="<!-- 3 -->\nclosed", state="closed", reason="completed"),
    )
    issue = Issue(marker="<!-- 0 -->", titles=("old", "new"), text="<!-- 0 -->\ntext", is_open=True, notes=notes)
    number, url = client.issue(issue)
    assert number > 0
    assert url.startswith("https://")
    monkeypatch.setattr(client, "_get", lambda path: {"number": 5, "title": "old", "body": "", "state": "open"})
    assert client.issue(issue, 5) == (5, "")


def test_github_accepts_every_read(client: Client) -> None:
    assert client.permission("user")
    assert client.pull(2).head_sha
    assert client.changed_paths(2, 1)[0]
    assert client.own_comment(2, "<!-- marker -->") is None


def test_github_accepts_the_requests_of_the_app(app: App) -> None:
    assert app.about()[0]["slug"]
    assert app.hook()["url"]
    assert app.installation("o/r")["id"]
    delivery = next(app.deliveries(0))
    assert app.payload(delivery.id)


def test_github_accepts_the_requests_for_an_installation_token(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The App's key gives the installation, and that a token, with which the client reads."""
    # GitHub still serves the media type of a former preview, which the description no longer lists.
    monkeypatch.setattr("github.Consts.mediaTypeIntegrationPreview", "application/json")
    _, _, key = make_certificate(tmp_path)
    client = connect(repository, "1", key)
    assert client.pull(2).head_sha
    requester = client._api.requester
    with pytest.raises(GithubException) as caught:
        requester.requestJsonAndCheck("POST", "/app/installations/1/access_tokens", input={"repositories": "r"})
    assert caught.value.status == 422


def test_contract_refuses_invalid_requests(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, a description that allows everything would pass."""
    monkeypatch.setattr("tipcflow.github.client.client.batches", lambda annotations: [annotations])
    with pytest.raises(TipcflowError, match="422"):
        client.publish(check(51, Conclusion.FAILURE))
