"""The webhook's route: one outbox row per delivery, refusals logged without the body, no login."""

import asyncio
import copy
import json
import lzma
import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.requests import Request
from tests.support.github.mutations import mutate

from tipcflow.config.repository import Repositories, Repository
from tipcflow.github.client import PullState
from tipcflow.github.flow import handle
from tipcflow.github.webhook.delivery import signature
from tipcflow.store import Store
from tipcflow_pages import webhook

TESTS = Path(__file__).parents[2]
SECRET = b"a secret"
ONE = "name: Codertocat/Hello-World\nconnection: hello_app\nsuite: toy\ncluster: two\n"


@pytest.fixture(scope="session")
def examples() -> dict[str, list[dict[str, Any]]]:
    packed = (TESTS / "golden" / "github" / "webhooks-examples.json.xz").read_bytes()
    found: dict[str, list[dict[str, Any]]] = json.loads(lzma.decompress(packed))
    return found


@pytest.fixture(scope="session")
def opened(examples: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    return next(one for one in examples["pull_request"] if one["action"] == "opened")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "configs"
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder))
    for file in ("suites/toy", "clusters/two", "policies/pr"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{file}.yaml").write_text("name: x\n")
    (folder / "repositories").mkdir()
    (folder / "repositories" / "hello.yaml").write_text(ONE)
    return folder


@pytest.fixture
def client(store: Store, config: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    # Airflow reads connections of its environment.
    monkeypatch.setenv("AIRFLOW_CONN_HELLO_APP", json.dumps({"conn_type": "generic", "password": SECRET.decode()}))
    webhook.configured.cache_clear()
    # Airflow replaces the handlers of logging when it is imported, also that of caplog.
    webhook.secret_of("hello_app")
    return TestClient(webhook.create_webhook(), raise_server_exceptions=False)


def post(client: TestClient, body: bytes, *, secret: bytes = SECRET, delivery: str = "", **changes: str) -> Any:
    headers = {
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(secret, body),
        "Content-Type": "application/json",
    }
    return client.post("/github", content=body, headers={**headers, **changes})


def test_a_delivery_is_one_row(client: TestClient, store: Store, opened: dict[str, Any]) -> None:
    body = json.dumps(opened).encode()
    response = post(client, body)
    assert (response.status_code, response.json()) == (202, {"outcome": "stored"})
    (row,) = store.outbox.rows()
    assert (row.repository, row.event, row.connection) == ("Codertocat/Hello-World", "pull_request", "hello_app")
    assert row.body is not None
    assert row.body["head_sha"] == opened["pull_request"]["head"]["sha"]
    assert "title" not in row.body


def test_replays_are_one_row(client: TestClient, store: Store, opened: dict[str, Any]) -> None:
    """GitHub's redelivery has the same id; a replay by others has another one, but the same signed body."""
    body = json.dumps(opened).encode()
    first = str(uuid.uuid4())
    post(client, body, delivery=first)
    for again in (first, first.upper(), str(uuid.uuid4())):
        response = post(client, body, delivery=again)
        assert (response.status_code, response.json()) == (200, {"outcome": "duplicate"})
    assert len(store.outbox.rows()) == 1


def test_a_wrong_signature_is_refused_and_logged_without_the_body(
    client: TestClient, store: Store, opened: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    opened = {**opened, "comment": "hunter2"}
    response = post(client, json.dumps(opened).encode(), secret=b"other")
    assert (response.status_code, response.json()["cause"]) == (401, "signature")
    assert store.outbox.rows() == []
    (record,) = [one for one in caplog.records if one.name == "tipcflow_pages.webhook"]
    assert "signature" in record.getMessage()
    assert "hunter2" not in caplog.text
    assert "a secret" not in caplog.text


def test_an_unknown_repository_is_refused(client: TestClient, store: Store, opened: dict[str, Any]) -> None:
    other = {**opened, "repository": {**opened["repository"], "full_name": "other/repo"}}
    assert post(client, json.dumps(other).encode()).status_code == 404
    assert store.outbox.rows() == []


def test_a_large_body_is_refused(client: TestClient, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    body = b'{"x": "' + b"y" * 27_000_000 + b'"}'
    assert post(client, body).status_code == 413

    def chunks() -> Any:
        for at in range(0, len(body), 1 << 20):
            yield body[at : at + (1 << 20)]

    headers = {
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(SECRET, body),
        "Content-Type": "application/json",
    }
    response = client.post("/github", content=chunks(), headers=headers)
    assert (response.status_code, response.json()["cause"]) == (413, "too_large")
    assert response.json()["detail"] == "body is larger than 25.0 MiB"
    assert "yyy" not in caplog.text
    assert store.outbox.rows() == []


def test_other_methods_and_paths_do_not_exist(client: TestClient) -> None:
    assert client.get("/github").status_code == 405
    for path in ("/", "/docs", "/openapi.json", "/api/runs", "/../api/runs"):
        assert client.get(path).status_code == 404


def test_a_missing_connection_and_a_wrong_file_are_temporary_errors(
    client: TestClient, store: Store, config: Path, opened: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(opened).encode()
    (config / "repositories" / "hello.yaml").write_text(ONE.replace("suite: toy", "suite: toys"))
    response = post(client, body)
    assert (response.status_code, response.json()["detail"]) == (503, "the delivery cannot be stored now")
    (config / "repositories" / "hello.yaml").write_text(ONE)
    webhook.configured.cache_clear()
    monkeypatch.setattr(webhook, "secret_of", lambda _: b"")
    assert post(client, body).status_code == 503
    assert store.outbox.rows() == []


def test_examples_of_github_pass_and_only_configured_repositories_are_stored(
    client: TestClient, store: Store, examples: dict[str, list[dict[str, Any]]]
) -> None:
    statuses = set()
    for event, bodies in examples.items():
        for payload in bodies:
            response = post(client, json.dumps(payload).encode(), **{"X-GitHub-Event": event})
            statuses.add(response.status_code)
            assert response.status_code < 500, (event, payload.get("action"), response.text)
    assert {200, 202, 404} >= statuses >= {202}
    rows = store.outbox.rows(limit=1000)
    assert rows
    assert {row.repository for row in rows} <= {"Codertocat/Hello-World", ""}


class Fork:
    """GitHub's view of every pull request: the head is in a fork, and no user has a permission."""

    def pull(self, number: int) -> PullState:
        return PullState("f" * 40, "fork/Hello-World", "master", "author", True, False, (), 1)

    def permission(self, login: str) -> str:
        return "read"


@pytest.mark.slow
def test_mutated_deliveries_cause_no_server_error_and_no_run(
    client: TestClient, store: Store, config: Path, examples: dict[str, list[dict[str, Any]]]
) -> None:
    """Signed bodies of all events, valid and mutated, of which none has a right to a run."""
    chance = random.Random(16)
    commands = (
        "/tipc run",
        "/tipc run whole",
        "/re-run all-failed",
        f"/tipc approve {'f' * 40}",
        "/tipc accept a because b",
    )
    for event, bodies in examples.items():
        for payload in bodies:
            changed = copy.deepcopy(payload)
            if event == "pull_request":
                changed["pull_request"]["head"]["sha"] = "f" * 40
                changed["pull_request"]["head"]["repo"] = {"full_name": "fork/Hello-World"}
            if event == "issue_comment":
                changed["issue"]["pull_request"] = {
                    "url": "https://api.github.com/repos/Codertocat/Hello-World/pulls/2"
                }
                changed["comment"]["body"] = chance.choice(commands)
            for number in range(2):
                response = post(client, json.dumps(changed).encode(), **{"X-GitHub-Event": event})
                assert response.status_code < 500, (event, number, response.text)
                mutate(changed, chance)
    repositories = Repositories(
        {"hello": Repository(name="Codertocat/Hello-World", connection="hello_app", suite="toy", cluster="two")}
    )
    rows = store.outbox.take("test", limit=1000)
    assert len({row.event for row in rows}) > 5
    for row in rows:
        handle(row, store, repositories, lambda _: Fork(), lambda *_: "")
    held = store.pulls.newest(number=2)
    assert {attempt.state for attempt in held} == {"held"}
    # A merge group is a commit of the repository, which only a user with write permission queues.
    assert [(attempt.number, attempt.body["why"]) for attempt in store.pulls.living()] in (
        [],
        [(0, "merge_group")],
    )


@pytest.mark.parametrize(("ends", "cause", "status"), [("never", "too_slow", 408), ("disconnected", "body", 400)])
def test_a_body_that_never_ends_is_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, ends: str, cause: str, status: int
) -> None:
    monkeypatch.setattr(webhook, "BODY_S", 0.1)
    names = {
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(SECRET, b"{"),
        "Content-Type": "application/json",
    }
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        if ends == "disconnected":
            return {"type": "http.disconnect"}
        return await asyncio.sleep(60)

    raw = [(name.lower().encode(), value.encode()) for name, value in names.items()]
    scope = {"type": "http", "method": "POST", "path": "/github", "headers": raw, "query_string": b""}
    response = asyncio.run(webhook.github(Request(scope, receive)))
    assert (response.status_code, json.loads(bytes(response.body))["cause"]) == (status, cause)
