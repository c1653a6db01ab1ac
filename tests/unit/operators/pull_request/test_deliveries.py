"""A burst of deliveries through the real webhook, and everything behind it."""

import json
import random
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from tests.support.github.webhook import serving_webhook
from tests.support.github.world import World

from tipcflow.github.trust import RunKey
from tipcflow.github.webhook.delivery import signature

pytestmark = pytest.mark.slow

SECRET = "secret"


def delivery(world: World, number: int, repeat: int) -> tuple[bytes, dict[str, str]]:
    """A repetition of the event `opened`: half of them GitHub's own, the others with another id and body."""
    pull = {**world.github.pull, "number": number}
    pull["base"] = {"ref": "main", "sha": world.base}
    unused = repeat if repeat % 2 else 0
    payload = {
        "action": "opened",
        "pull_request": pull,
        "repository": {"full_name": "o/r"},
        "sender": {"login": "author", "type": "User"},
        "unused": unused,
    }
    body = json.dumps(payload).encode()
    return body, {
        "X-GitHub-Event": "pull_request",
        "X-GitHub-Delivery": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number}/{unused}")),
        "X-Hub-Signature-256": signature(SECRET.encode(), body),
        "Content-Type": "application/json",
    }


def test_200_deliveries_in_10_s_are_20_runs(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(world.configs))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", f"sqlite:///{tmp_path / 'tipcflow.db'}")
    monkeypatch.setenv("AIRFLOW_CONN_APP", json.dumps({"conn_type": "generic", "password": SECRET}))
    numbers = range(1, 21)
    deliveries = [delivery(world, number, repeat) for number in numbers for repeat in range(10)]
    random.Random(200).shuffle(deliveries)
    with serving_webhook() as url, httpx.Client(timeout=10) as client, ThreadPoolExecutor(20) as pool:
        begun = time.monotonic()
        sent = [pool.submit(client.post, url, content=body, headers=headers) for body, headers in deliveries]
        statuses = Counter(response.result().status_code for response in sent)
        took = time.monotonic() - begun
    assert statuses == {202: 20 * 6, 200: 20 * 4}
    assert took < 10
    for _ in range(4):
        world.work()
    assert world.store.outbox.waiting() == 0
    assert {run for _, run in world.dag_runs.started} == {
        RunKey("o/r", number, world.sha).run_id for number in numbers
    }
    assert world.dag_runs.starts == 20
    assert sorted(one["external_id"] for one in world.github.checks) == sorted(f"{number}/1" for number in numbers)
