"""Waits in the triggerer end on time, whatever the clock of its machine shows."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import BaseTrigger
from tests.support.stories import a_run

from tipcflow.domain import InfraError, Node
from tipcflow.store import Store, base
from tipcflow_operators import countdown
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers import dag_run as dag_run_trigger
from tipcflow_operators.triggers import job, lease, step
from tipcflow_operators.triggers.dag_run import DagRunTrigger
from tipcflow_operators.triggers.job import JobTrigger
from tipcflow_operators.triggers.lease import LeaseTrigger
from tipcflow_operators.triggers.step import StepTrigger

WAIT_S = 1.0
NODE = Node(name="a", address="192.0.2.1", python="/usr/bin/python3", workspace="/w").model_dump(mode="json")
WRONG = [pytest.param(86400.0, id="a day ahead"), pytest.param(-86400.0, id="a day behind")]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    for module in (job, lease, step, dag_run_trigger):
        monkeypatch.setattr(module, "SETTLE_S", 0.05)
    monkeypatch.setattr(dag_run_trigger, "POLL_S", 0.05)
    with Store.open() as made:
        made.runs.create(a_run("mine"))
        made.runs.create(a_run("holder"))
        assert made.leases.acquire("holder", [("192.0.2.1", 0)], owner="other", ttl_s=600)
        yield made


def made(until: float) -> list[BaseTrigger]:
    lease: dict[str, Any] = {"run": "mine", "slots": [["192.0.2.1", 0]], "since": 0.0, "owner": "o", "names": {}}
    job: dict[str, Any] = {"run": "mine", "step": "train", "node": NODE, "job": "/w/jobs/r/train/1", "peers": []}
    return [
        StepTrigger(run="mine", step="train", awaited="other", until=until),
        LeaseTrigger(**lease, said="", looked=False, until=until),
        JobTrigger(**job, resume={}, lost_after_s=60.0, until=until),
        DagRunTrigger(dag_id="d", run_id="r", until=until),
    ]


async def waited(trigger: BaseTrigger) -> float:
    """How long it waits for what never comes, seconds."""
    if isinstance(trigger, JobTrigger):

        async def watch(*_: Any) -> bool:
            await asyncio.sleep(0.05)
            return False

        trigger._watch = watch  # type: ignore[method-assign]
    begun = time.monotonic()
    await asyncio.wait_for(anext(trigger.run()), 20)
    return time.monotonic() - begun


@pytest.mark.parametrize("wrong_s", WRONG)
@pytest.mark.parametrize("which", range(4), ids=["step", "lease", "job", "dag_run"])
def test_a_trigger_ends_by_the_databases_clock(
    store: Store, monkeypatch: pytest.MonkeyPatch, which: int, wrong_s: float
) -> None:
    """The triggerer's machine has another time than the database server."""
    right, clock = time.time, base.clock
    monkeypatch.setattr(base, "clock", lambda connection: clock(connection) - wrong_s)
    monkeypatch.setattr("tipcflow_operators.airflow.dag_runs.state_of", lambda *_: "running")
    trigger = made(right() - wrong_s + WAIT_S)[which]
    assert WAIT_S - 0.2 <= asyncio.run(waited(trigger)) < WAIT_S + 8


@pytest.mark.parametrize("wrong_s", WRONG)
def test_a_clock_that_is_set_meanwhile_changes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, wrong_s: float
) -> None:
    right = time.time

    async def left() -> tuple[float, float]:
        end = Countdown(right() + 100)
        before = await end.left_s()
        monkeypatch.setattr("time.time", lambda: right() + wrong_s)
        return before, await end.left_s()

    before, after = asyncio.run(left())
    assert 90 < after <= before <= 100


def test_task_ends_without_the_database(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> float:
        raise InfraError("the database is away")

    monkeypatch.setattr(countdown, "_now", away)
    assert not asyncio.run(Countdown(time.time() + 100).over())
    assert asyncio.run(Countdown(time.time() - 1).over())
