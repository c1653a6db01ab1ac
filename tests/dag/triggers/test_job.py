"""What watches a job while its task is deferred: it also speaks for members whose own tasks find no worker."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TriggerEvent
from tests.support.sshd import Server

from tipcflow.airflow_api.node_connections import connection_of
from tipcflow.config.waits import Waits
from tipcflow.domain import Node, SlurmStep, StoppedBy
from tipcflow.execute.events import read_events
from tipcflow.execute.progress import Kind
from tipcflow.remote import commands
from tipcflow.transport import Completed
from tipcflow.transport.async_base import AsyncTransport
from tipcflow.transport.asyncssh_adapter import AsyncSshTransport
from tipcflow_operators.airflow import async_connect
from tipcflow_operators.triggers import job as triggers
from tipcflow_operators.triggers.job import JobTrigger

NODES = [
    Node(name=name, address=f"192.0.2.{number}", python="/usr/bin/python3", workspace="/w")
    for number, name in enumerate("abc", 1)
]
JOB = "/w/jobs/r/train/3"


@pytest.fixture
def requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(node, command) of all queries; node b is unreachable."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setattr(triggers, "SETTLE_S", 0.0)
    messages: list[tuple[str, str]] = []

    class Line:
        def __init__(self, node: Node) -> None:
            self.node = node

        async def run(self, command: str, **_: Any) -> Completed:
            messages.append((self.node.name, command))
            return Completed(0, b"", b"")

    @asynccontextmanager
    async def connection(node: Node) -> Any:
        if node.name == "b":
            raise OSError("no route")
        yield Line(node)

    monkeypatch.setattr(triggers, "connect_async", connection)
    return messages


def fired(trigger: JobTrigger, watches: list[bool]) -> dict[str, Any]:
    """The events of a trigger after a round trip through Airflow's database."""
    again = JobTrigger(**trigger.serialize()[1])
    left = iter(watches)

    async def watch(_: Any, seconds: float) -> bool:
        assert seconds > 0
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
    known |= {"resume": {}, "until": 4e9, "lost_after_s": 60.0, "attempt": 3}
    return JobTrigger(**{**known, **fields})


def test_leases_of_peers_are_renewed_despite_an_unreachable_peer(requested: list[tuple[str, str]]) -> None:
    messages = fired(a_trigger(peers_every_s=-1.0), [False, False, True])
    assert messages == {"step": "train", "resume": {}, "attempt": 3, "stood": None, "hung": "", "hang_number": 0}
    assert requested == [("c", commands.poll(NODES[2], JOB))] * 2


def test_no_node_is_queried_more_often_than_needed(requested: list[tuple[str, str]]) -> None:
    assert fired(a_trigger(peers_every_s=3600.0), [False, False, True])["attempt"] == 3
    assert requested == []


class Clock:
    """Time that passes while a job is watched, and a little with every connection."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.mark.parametrize(("lease_s", "longest"), [(5, 2.0), (30, 12.0), (600, 60.0)])
def test_others_hear_of_a_controller_before_their_lease_ends(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, lease_s: float, longest: float
) -> None:
    clock, watched = Clock(), []
    monkeypatch.setattr(triggers, "time", clock)
    heard = [clock.now]
    every_s = Waits(node_lease_s=lease_s).peers_every_s
    trigger = a_trigger(peers_every_s=every_s)

    async def watch(_: Any, seconds: float) -> bool:
        watched.append(seconds)
        clock.now += seconds + 0.1
        return clock.now > 1000.0 + 10 * lease_s

    async def query(node: Node, command: str, within_s: float) -> None:
        assert within_s <= every_s, "one that does not respond holds up the others"
        clock.now += within_s if node.name == "b" else 0.0
        if node.name == "c":
            heard.append(clock.now)

    trigger._watch, trigger._query = watch, query  # type: ignore[method-assign]
    asyncio.run(asyncio.wait_for(anext(trigger.run()), 60))
    assert max(watched) == pytest.approx(longest)
    assert len(heard) > 5
    assert max(after - before for before, after in pairwise(heard)) < lease_s


def test_single_job_is_watched_without_a_break(requested: list[tuple[str, str]]) -> None:
    me = [[NODES[0].model_dump(mode="json"), JOB]]
    assert a_trigger(peers_every_s=2.0, peers=me)._watch_s(0.0) == triggers.WATCH_S


def test_a_trigger_of_an_earlier_version_is_understood() -> None:
    fields = a_trigger().serialize()[1]
    for name in ("silence_s", "peers_every_s", "hung", "hang_number", "attempt"):
        del fields[name]
    assert JobTrigger(**fields).peers_every_s == 240.0


def fired_by(
    trigger: JobTrigger, monkeypatch: pytest.MonkeyPatch, *watches: list[dict[str, Any]]
) -> dict[str, Any]:
    """The trigger's events for the runner's output in one watch after the other."""
    left = iter(watches)

    class Line:
        async def lines(self, *_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
            for event in next(left):
                yield json.dumps(event).encode()

    @asynccontextmanager
    async def connection(_: Node) -> Any:
        yield Line()

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(trigger.run()), 60)

    monkeypatch.setattr(triggers, "connect_async", connection)
    payload = asyncio.run(first()).payload
    assert isinstance(payload, dict)
    assert next(left, None) is None, "it fired too early"
    return payload


def alive(up: float, *still_s: float) -> list[dict[str, Any]]:
    return [{"event": "alive", "state": "running", "up": up, "still_s": still} for still in still_s]


def test_a_stalled_runner_is_reported_even_if_each_watch_is_shorter(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = a_trigger(silence_s=8.0)
    messages = fired_by(
        trigger, monkeypatch, alive(5.0, 0.0, 1.0, 3.0), alive(5.0, 0.0, 3.0), alive(5.0, 0.0, 2.0)
    )
    assert messages["stood"] == {"up": 5.0, "still_s": 8.0}


def test_a_runner_that_works_again_is_watched_on(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    end = [{"event": "end"}]
    trigger = a_trigger(silence_s=8.0)
    beats = (alive(5.0, 0.0, 7.0), alive(5.0, 0.0, 0.0, 7.0), alive(6.0, 0.0, 7.0), end)
    assert fired_by(trigger, monkeypatch, *beats)["stood"] is None


OLD_HANG = {"event": "hang", "message": "no progress for 6 s"}
HANG = OLD_HANG | {"number": 2}
END = {"event": "end"}


def again(event: dict[str, Any]) -> JobTrigger:
    """The trigger of a task that knows the hang for which the last one fired."""
    return a_trigger(hung=event["hung"], hang_number=event["hang_number"])


@pytest.mark.parametrize(("hang", "number"), [(HANG, 2), (OLD_HANG, 0)], ids=["numbered", "older runner"])
def test_a_hang_wakes_the_task_once(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, hang: dict[str, Any], number: int
) -> None:
    """The task collects evidence from the peers while they still wait for the hung rank."""
    event = fired_by(a_trigger(), monkeypatch, [hang])
    assert (event["hung"], event["hang_number"]) == ("no progress for 6 s", number)
    assert fired_by(again(event), monkeypatch, [hang], [hang, END])["hung"] == "no progress for 6 s"


def test_hang_is_identified_by_its_number(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    event = fired_by(a_trigger(), monkeypatch, [HANG])
    assert fired_by(again(event), monkeypatch, [HANG | {"message": "reworded"}, END])["hang_number"] == 2
    assert fired_by(again(event), monkeypatch, [HANG | {"number": 3}])["hang_number"] == 3


def test_trigger_stored_with_the_reason_of_a_hang_does_not_fire_again(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored before hangs had numbers; so is the job's runner."""
    assert fired_by(a_trigger(hung="no progress for 6 s"), monkeypatch, [OLD_HANG, END])["hang_number"] == 0


def test_a_hang_without_peers_wakes_no_task(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    me = [[NODES[0].model_dump(mode="json"), JOB]]
    assert fired_by(a_trigger(peers=me), monkeypatch, [HANG], [END])["hung"] == "no progress for 6 s"


def test_a_garbled_leg_record_does_not_end_the_watch(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fired_by(a_trigger(), monkeypatch, [{"event": "leg", "record": [1]}, {"event": "end"}])["attempt"] == 3


@pytest.mark.parametrize(
    "end",
    [b"7|COMPLETING|NodeDown|N/A|N/A|a|t\n", b"7|RUNNING|None|N/A|N/A|a|other\n"],
    ids=["ended", "reused ID"],
)
def test_end_of_the_allocation_wakes_the_task_at_once(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    """Not after `lost_after_s`: no step will reach the node again. The login node is queried, not the node."""
    states = [OSError("connection lost"), b"7|RUNNING|None|N/A|N/A|a|t\n", end]
    allocated = NODES[0].model_copy(update={"slurm": SlurmStep(job="7", name="t")})
    asked: list[bool] = []

    class Line:
        async def lines(self, *_: Any, **__: Any) -> AsyncGenerator[bytes, None]:
            for line in ():
                yield line

        async def run(self, command: str) -> Completed:
            assert "--jobs=7" in command
            state = states.pop(0)
            if isinstance(state, OSError):
                raise state
            return Completed(0, state, b"")

    @asynccontextmanager
    async def connection(node: Node) -> Any:
        assert node.slurm is not None
        asked.append(node.slurm.login)
        yield Line()

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(a_trigger(node=allocated.model_dump(mode="json")).run()), 60)

    async def no_pause(_: float) -> None:
        pass

    monkeypatch.setattr(triggers, "connect_async", connection)
    monkeypatch.setattr(triggers.asyncio, "sleep", no_pause)
    assert asyncio.run(first()).payload == {
        "step": "train",
        "resume": {},
        "attempt": 3,
        "stood": None,
        "hung": "",
        "hang_number": 0,
    }
    assert asked == [False, True] * 3


@pytest.mark.process
def test_watches_that_fail_after_their_first_line_are_a_lost_node(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pauses between them, over a real sshd. The program stands for a runner that cannot continue."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setattr(triggers, "SETTLE_S", 0.0)
    watches, python = tmp_path / "watches", tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho >>{watches}\necho '{json.dumps(alive(5.0, 0.0)[0])}'\nexit 3\n")
    python.chmod(0o755)
    node = server.node().model_copy(update={"connection": "lab_a", "python": str(python)})
    monkeypatch.setenv("AIRFLOW_CONN_LAB_A", json.dumps(connection_of(node)))
    trigger = a_trigger(node=node.model_dump(mode="json"), lost_after_s=2.0)

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(trigger.run()), 60)

    assert asyncio.run(first()).payload["attempt"] == 3
    assert 2 <= len(watches.read_text().splitlines()) <= 4


def test_the_ssh_provider_is_imported_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The import takes seconds, and all triggers share the event loop."""
    threads: list[threading.Thread] = []

    class Hook:
        def __init__(self, **_: Any) -> None:
            pass

        async def get_conn(self) -> Any:
            return nullcontext("connection")

    def imported() -> type[Hook]:
        threads.append(threading.current_thread())
        return Hook

    monkeypatch.setattr(async_connect, "_hook_class", imported)
    monkeypatch.setenv(f"AIRFLOW_CONN_{NODES[0].connection.upper()}", "ssh://a")

    async def connected() -> AsyncTransport:
        async with async_connect.connect_async(NODES[0]) as transport:
            return transport

    assert isinstance(asyncio.run(connected()), AsyncSshTransport)
    assert threads
    assert threads[0] is not threading.main_thread()


def test_leg_is_shown_once_although_repeated_by_every_watch(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = {"run": "r", "step": "train", "node": "a", "leg": "cpu", "reason": "exited", "exit_code": 3}
    leg = {"event": "leg", "record": record}
    fired_by(a_trigger(), monkeypatch, [leg], [leg, {"event": "end"}])
    events, _ = read_events(tmp_path, "r", 0)
    assert [(one.kind, one.leg, one.text) for one in events] == [(Kind.LEG, "cpu", '{"exit_code": 3}')]


def test_servers_of_all_nodes_end_when_the_last_trainers_have_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Node c is queried again until its trainers have succeeded; b has ended already."""
    monkeypatch.setattr(triggers, "SETTLE_S", 0.0)
    monkeypatch.setattr(triggers, "TRAINED_EVERY_S", 0.0)
    trained = {"heartbeat": {"trained": True}, "record": None}
    responses = {"b": [{"heartbeat": None, "record": {"exit_code": 0}}] * 2}
    responses["c"] = [{"heartbeat": {"trained": False}, "record": None}, trained]
    queries: list[tuple[str, str]] = []

    async def query(node: Node, command: str, within_s: float) -> str:
        queries.append((node.name, command))
        return "{}" if command == commands.finish(node, JOB) else json.dumps(responses[node.name].pop(0))

    trigger = a_trigger()
    monkeypatch.setattr(trigger, "_query", query)
    event = {"event": "trained"}
    fired_by(trigger, monkeypatch, [event], [event], [event, END])
    polled = [(node.name, commands.poll(node, JOB)) for node in NODES[1:]]
    assert queries == [*polled, *polled, *[(node.name, commands.finish(node, JOB)) for node in NODES]]


@pytest.mark.parametrize("by_user", [True, False])
def test_members_are_stopped_if_a_user_ended_the_task(
    requested: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, by_user: bool
) -> None:
    async def is_by_user(_: object) -> bool:
        return by_user

    monkeypatch.setattr(triggers, "is_by_user", is_by_user)
    asyncio.run(a_trigger().on_kill())
    stops = [(node.name, commands.stop(node, JOB, "stopped from Airflow", StoppedBy.USER)) for node in NODES]
    # Node b is unreachable.
    assert requested == ([stops[0], stops[2]] if by_user else [])
