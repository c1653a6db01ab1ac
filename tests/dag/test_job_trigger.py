"""What watches a job while its task is deferred: it also speaks for members whose own tasks find no worker."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent

from operators import triggers
from operators.triggers import JobTrigger
from tipcflow.domain import Node
from tipcflow.remote import commands

NODES = [
    Node(name=name, address=f"192.0.2.{number}", python="/usr/bin/python3", workspace="/w")
    for number, name in enumerate("abc", 1)
]
JOB = "/w/jobs/r/train/3"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(node, command) of all that was asked; node b cannot be reached."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setattr(triggers, "SETTLE_S", 0.0)
    said: list[tuple[str, str]] = []

    class Line:
        def __init__(self, node: Node) -> None:
            self.node = node

        async def run(self, command: str, **_: Any) -> None:
            said.append((self.node.name, command))

    async def connection(node: Node) -> Any:
        if node.name == "b":
            raise OSError("no route")

        @asynccontextmanager
        async def line() -> Any:
            yield Line(node)

        return line()

    monkeypatch.setattr(triggers, "_connection", connection)
    return said


def fired(trigger: JobTrigger, watches: list[bool]) -> dict[str, Any]:
    """What it says after it went through Airflow's database, and watched as told."""
    again = JobTrigger(**trigger.serialize()[1])
    left = iter(watches)

    async def watch(_: Any) -> bool:
        return next(left)

    again._watch = watch  # type: ignore[method-assign]

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(again.run()), 60)

    payload = asyncio.run(first()).payload
    assert isinstance(payload, dict)
    return payload


def a_trigger(**fields: Any) -> JobTrigger:
    peers: list[list[Any]] = [[node.model_dump(mode="json"), JOB] for node in NODES]
    known: dict[str, Any] = {"run": "r", "step": "train", "node": peers[0][0], "job": JOB, "peers": peers}
    known |= {"resume": {}, "until": 4e9, "lost_after_s": 60.0}
    return JobTrigger(**{**known, **fields})


def test_peers_hear_of_a_controller_and_one_that_is_away_does_not_matter(asked: list[tuple[str, str]]) -> None:
    said = fired(a_trigger(peers_every_s=-1.0), [False, False, True])
    assert said == {"step": "train", "resume": {}, "attempt": 3}
    assert asked == [("c", commands.poll(NODES[2], JOB))] * 2


def test_nobody_is_asked_more_often_than_needed(asked: list[tuple[str, str]]) -> None:
    assert fired(a_trigger(peers_every_s=3600.0), [False, False, True])["attempt"] == 3
    assert asked == []


def test_a_trigger_of_an_earlier_version_is_understood() -> None:
    fields = a_trigger().serialize()[1]
    del fields["silence_s"], fields["peers_every_s"]
    assert JobTrigger(**fields).peers_every_s == 240.0
