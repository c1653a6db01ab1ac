"""Polls of all kinds of triggers on a PostgreSQL server."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool
from tests.support import postgres
from tests.support.stories import a_run

from tipcflow.store import Store
from tipcflow.store.engine import POLL_CONNECT_S, POLL_LOCK_S, POLL_STATEMENT_S
from tipcflow_operators import countdown
from tipcflow_operators.pull_request.trigger import waits
from tipcflow_operators.triggers.lease import LeaseTrigger
from tipcflow_operators.triggers.step import StepTrigger
from tipcflow_operators.triggers.waits import QUERY_S


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[postgres.Server]:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    with postgres.running() as made:
        monkeypatch.setenv("TIPCFLOW_DATABASE_URL", made.create())
        yield made


@pytest.mark.process
def test_polls_of_all_triggers_share_one_login(server: postgres.Server) -> None:
    with Store.open() as store:
        for run in ("mine", "holder"):
            store.runs.create(a_run(run))
        assert store.leases.acquire("holder", [("192.0.2.1", 0)], owner="", ttl_s=600)
    logins: list[object] = []

    def add(connection: object, _: object) -> None:
        logins.append(connection)

    until = time.time() + 600
    slots: dict[str, Any] = {"slots": [["192.0.2.1", 0]], "names": {"192.0.2.1": "node-1"}}
    lease = LeaseTrigger(run="mine", since=0.0, until=until, owner="o", said="", **slots)
    step = StepTrigger(run="mine", step="train", awaited="prepare", until=until)
    event.listen(Pool, "connect", add)
    try:
        for _ in range(5):
            assert lease._held()[0].startswith("waiting for node-1 slot 0")
            assert not step._ended()
            assert countdown._now() < until
            assert not waits()
        lease._leave()
    finally:
        event.remove(Pool, "connect", add)
    assert len(logins) == 1


def test_a_poll_ends_before_its_trigger_gives_up() -> None:
    assert POLL_CONNECT_S + POLL_CONNECT_S + POLL_LOCK_S < QUERY_S
    assert POLL_LOCK_S < POLL_STATEMENT_S < QUERY_S
