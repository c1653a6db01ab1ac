"""What a run waits for while Slurm queues it, with recorded output of squeue."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, open_store

from tipcflow.domain import Cluster, Node, SlurmSource, SlurmStep
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument, SlurmPlace
from tipcflow.execute.events import latest_events
from tipcflow.transport import Completed
from tipcflow_operators.triggers import allocation as triggers
from tipcflow_operators.triggers import slurm_queue
from tipcflow_operators.triggers.allocation import AllocationTrigger

CLUSTER = Cluster(
    name="hpc",
    kind="slurm",
    slurm=SlurmSource(partition="gpu", time_limit_minutes=30, workspace="/scratch/{node}"),
    nodes=(
        Node(
            name="slurm-1",
            address="slurm-1",
            python="/p",
            workspace="/scratch/{node}",
            connection="hpc_login",
            slurm=SlurmStep(),
        ),
    ),
)
PENDING = "7|PENDING|Priority|2026-11-26T09:46:34|N/A||tipc-mine-1\n"
RUNNING = "7|RUNNING|None|2026-11-26T09:46:34|2026-11-26T10:16:34|n1|tipc-mine-1\n"


class Login:
    """A connection to a login node whose job has these states, one after the other."""

    def __init__(self, *states: str | Exception) -> None:
        self.states = list(states)
        self.nodes: list[Node] = []

    @asynccontextmanager
    async def connect(self, node: Node) -> AsyncIterator["Login"]:
        self.nodes.append(node)
        yield self

    async def run(self, command: str, **_: Any) -> Completed:
        if "--sort=-p,i" in command:
            return Completed(0, b"5\n7\n", b"")
        assert "--me" in command
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return Completed(0, state.encode(), b"")


def trigger(run: str, seconds: float) -> AllocationTrigger:
    cluster = CLUSTER.model_dump(mode="json")
    until = time.time() + seconds
    return AllocationTrigger(name=f"tipc-{run}-1", cluster=cluster, since=5.0, until=until, logged="", run=run)


def fired(
    login: Login, monkeypatch: pytest.MonkeyPatch, *, seconds: float = 60.0
) -> tuple[Any, AllocationTrigger]:
    """The trigger's event after a round trip through the database."""
    monkeypatch.setattr(triggers, "SETTLE_S", 0.01)
    monkeypatch.setattr(triggers, "POLL_S", 0.01)
    monkeypatch.setattr(slurm_queue, "FRESH_S", 0.0)
    monkeypatch.setattr(slurm_queue, "connect_async", login.connect)
    made = trigger("mine", seconds)
    path, fields = made.serialize()
    assert path == "tipcflow_operators.triggers.AllocationTrigger"
    again = AllocationTrigger(**fields)

    async def first() -> Any:
        return await asyncio.wait_for(anext(again.run()), 60)

    return asyncio.run(first()).payload, again


class Clock:
    """Stands for `Countdown`, which reads the database's clock."""

    def __init__(self, until: float) -> None:
        self.until = until

    async def over(self) -> bool:
        return time.time() > self.until


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(triggers, "Countdown", Clock)
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))


def test_trigger_fires_when_the_job_has_its_nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open_store(tmp_path / "tipcflow.db") as store:
        store.runs.create(a_run("mine"))
        store.documents.put("mine", AllocationWaitDocument(since=5.0, until=6.0))
    login = Login(PENDING, OSError("connection lost"), PENDING, RUNNING)
    event, trigger = fired(login, monkeypatch)
    assert event == {"since": 5.0}
    assert trigger.logged == "waiting for Slurm job 7, position 2 of 2 in partition gpu, reason Priority"
    assert [event.text for event in latest_events(tmp_path, "mine", 4096)] == [trigger.logged]
    with open_store(tmp_path / "tipcflow.db") as store:
        place = SlurmPlace(job="7", partition="gpu", position=2, pending=2, reason="Priority")
        expected = AllocationWaitDocument(since=5.0, until=6.0, place=place)
        assert store.documents.get("mine", AllocationWaitDocument) == expected
    assert {(node.connection, node.slurm and node.slurm.login) for node in login.nodes} == {("hpc_login", True)}


@pytest.mark.parametrize("end", ["", RUNNING.replace("RUNNING", "CANCELLED")], ids=["unknown", "cancelled"])
def test_trigger_fires_when_the_job_has_ended(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    assert fired(Login(PENDING, end), monkeypatch)[0] == {"since": 5.0}


def test_trigger_fires_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fired(Login(PENDING), monkeypatch, seconds=0.2)[0] == {"since": 5.0}


def test_waiting_runs_share_their_queries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(triggers, "SETTLE_S", 0.1)
    monkeypatch.setattr(triggers, "POLL_S", 0.1)
    monkeypatch.setattr(slurm_queue, "FRESH_S", 0.5)
    # A hundred openings of a SQLite file take as long as the test; those of a server share their connections.
    monkeypatch.setattr(triggers, "_change", lambda run, place: None)
    names = [f"run-{number}" for number in range(100)]
    lines = "".join(PENDING.replace("tipc-mine-1", f"tipc-{name}-1") for name in names)
    login = Login(lines, OSError("connection lost"), lines)
    monkeypatch.setattr(slurm_queue, "connect_async", login.connect)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(anext(trigger(name, 3.0).run()) for name in names))

    assert [event.payload for event in asyncio.run(all_of_them())] == [{"since": 5.0}] * 100
    assert 3 <= len(login.nodes) <= 10
    waits = "waiting for Slurm job 7, position 2 of 2 in partition gpu, reason Priority"
    assert {event.text for name in names for event in latest_events(tmp_path, name, 4096)} == {waits}


def test_result_from_before_the_request_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a trigger would fire, because the job of its run was not submitted yet."""
    login = Login("", PENDING)
    monkeypatch.setattr(slurm_queue, "connect_async", login.connect)

    async def asked() -> tuple[slurm_queue.Queue, slurm_queue.Queue]:
        clock = asyncio.get_running_loop().time
        return await slurm_queue.queue_of(CLUSTER, clock()), await slurm_queue.queue_of(CLUSTER, clock())

    before, after = asyncio.run(asked())
    assert before.waiting("tipc-mine-1") is None
    assert after.waiting("tipc-mine-1") is not None
