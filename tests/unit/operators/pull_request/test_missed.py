"""Deliveries that the webhook missed are fetched once."""

import json
import lzma
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.github.api import GitHub, serving

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain import InfraError
from tipcflow.github.client.app import App
from tipcflow.github.client.connect import api
from tipcflow.store import Store
from tipcflow_operators.pull_request.missed import fetch_missed

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "golden" / "github" / "webhooks-examples.json.xz"
NAME = "Codertocat/Hello-World"


@pytest.fixture
def app(github: GitHub) -> Iterator[App]:
    with serving(github) as url:
        yield App(api(url, None))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        yield store


def opened() -> dict[str, Any]:
    examples = json.loads(lzma.decompress(EXAMPLES.read_bytes()))["pull_request"]
    return next(one for one in examples if one["action"] == "opened" and one["repository"]["full_name"] == NAME)


def delivery(
    number: int, *, guid: int = 0, status: int = 502, age_s: float = 3600.0, **more: Any
) -> dict[str, Any]:
    at = datetime.fromtimestamp(time.time() - age_s, UTC)
    return {
        "id": number,
        "guid": f"00000000-0000-0000-0000-{guid or number:012}",
        "event": "pull_request",
        "status_code": status,
        "delivered_at": at.isoformat().replace("+00:00", "Z"),
        "payload": opened(),
        **more,
    }


def fetch(app: App, store: Store) -> tuple[int, int]:
    repository = Repository(name=NAME, connection="app", suite="toy", cluster="two")
    messages: list[str] = []
    found = fetch_missed(app, "app", Repositories({"r": repository}), store, time.time(), report=messages.append)
    assert messages == []
    return found


def test_missed_deliveries_are_stored_once_over_all_pages(app: App, github: GitHub, store: Store) -> None:
    github.deliveries = [
        delivery(7, age_s=10),
        delivery(6, guid=3, status=202),
        delivery(5, status=200),
        delivery(4, event="star"),
        delivery(3),
        delivery(2),
        delivery(1, age_s=10 * 86400),
    ]
    assert fetch(app, store) == (1, 6)
    (row,) = store.outbox.rows()
    assert row.delivery.endswith("2")
    assert row.body
    assert row.body["head_sha"] == opened()["pull_request"]["head"]["sha"]
    assert fetch(app, store) == (0, 6)


def test_the_delivery_that_arrives_later_is_a_duplicate(app: App, github: GitHub, store: Store) -> None:
    github.deliveries = [delivery(1)]
    fetch(app, store)
    again = {"connection": "app", "repository": NAME, "event": "pull_request", "body": {}}
    assert not store.outbox.add(delivery=github.deliveries[0]["guid"], body_sha256="f" * 64, **again)  # type: ignore[arg-type]


def test_a_payload_of_another_repository_is_not_stored(app: App, github: GitHub, store: Store) -> None:
    other = {**opened(), "repository": {"full_name": "other/r"}}
    github.deliveries = [delivery(1, payload=other)]
    assert fetch(app, store) == (0, 1)


def test_an_error_of_github_is_temporary(
    app: App, github: GitHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    github.deliveries = [delivery(1)]
    github.faults = [("GET", 429, {"Retry-After": "600"}, False)]
    with pytest.raises(InfraError) as caught:
        fetch(app, store)
    assert caught.value.passing
    assert fetch(app, store) == (1, 1)


def test_events_of_unconfigured_repositories_do_not_crowd_out_a_missed_one(
    app: App, github: GitHub, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An App of a whole organization gets 404 for each event of a repository without a file."""
    monkeypatch.setattr("tipcflow_operators.pull_request.missed.MOST", 3)
    github.deliveries = [delivery(1), *(delivery(number, status=404, age_s=7200) for number in range(2, 9))]
    assert fetch(app, store) == (1, 8)


def test_a_delivery_that_github_forgot_does_not_stop_the_others(app: App, github: GitHub, store: Store) -> None:
    github.deliveries = [delivery(1, age_s=3600), delivery(2, age_s=7200, payload=None)]
    messages: list[str] = []
    repository = Repository(name=NAME, connection="app", suite="toy", cluster="two")
    found = fetch_missed(app, "app", Repositories({"r": repository}), store, time.time(), report=messages.append)
    assert found == (1, 2)
    assert len(messages) == 1
    assert "delivery 00000000-0000-0000-0000-000000000002, event pull_request: " in messages[0]
