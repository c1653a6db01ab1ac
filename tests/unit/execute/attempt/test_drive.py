"""An attempt on simulated nodes: which members are stopped when, and whether evidence is collected before."""

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tipcflow.domain import (
    EndReason,
    ExitRecord,
    InfraError,
    JobCommand,
    JobSpec,
    MemberState,
    Node,
    SshTarget,
    StoppedBy,
)
from tipcflow.execute.attempt import decisions, drive
from tipcflow.execute.attempt.drive import AttemptDriver
from tipcflow.execute.failure.root_cause import find_root_cause
from tipcflow.execute.job.member import Member
from tipcflow.execute.progress import silent

DEADLINE_S = 60.0


class ScriptedNode:
    """A node whose job ends as configured: by itself, when it is stopped, or never."""

    def __init__(self, name: str, *, code: int | None = None, hangs: bool = False) -> None:
        self.node = Node(
            name=name, address=name, ssh=SshTarget(alias=name), workspace="/w", python="/usr/bin/python3"
        )
        self.code, self.hangs = code, hangs
        self.went, self.stopped = threading.Event(), threading.Event()
        self.reason = ""
        self.by: StoppedBy | None = None

    def start(self, spec: JobSpec) -> dict[str, Any]:
        return {"state": "staged"}

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        return {"state": "staged"}

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        yield {"event": "response", "state": "staged"}
        yield from self.watch(spec, resume, seconds)

    def go(self, spec: JobSpec) -> None:
        self.went.set()

    def stop(self, spec: JobSpec, reason: str, by: StoppedBy) -> None:
        self.reason = self.reason or reason
        self.by = by
        self.stopped.set()

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        yield {"event": "state", "state": "staged"}
        while not self.went.wait(0.01):
            if self.stopped.is_set():
                yield self.end(spec, reason=EndReason.STOPPED)
                return
        if self.code is not None:
            yield self.end(spec, reason=EndReason.EXITED, exit_code=self.code)
            return
        if self.hangs:
            yield {"event": "hang", "message": "no progress"}
        assert self.stopped.wait(DEADLINE_S)
        yield self.end(spec, reason=EndReason.STOPPED)

    def end(self, spec: JobSpec, **fields: Any) -> dict[str, Any]:
        if fields["reason"] is EndReason.STOPPED:
            fields["stopped_by"] = self.by
        record = ExitRecord(run=spec.run, step=spec.step, node=spec.node, ended_at=time.time(), **fields)
        return {"event": "end", "record": record.model_dump(mode="json")}

    def evidence(self, spec: JobSpec, seconds: float) -> dict[str, Any]:
        return {"why": "requested"}

    def reconnect(self) -> None:
        raise InfraError("no")


def members(*nodes: ScriptedNode) -> list[Member]:
    command = JobCommand(text="true", cwd=".")
    return [
        Member(
            node,
            JobSpec(
                run="r", step="v/train", node=node.node.name, fence=1, workspace="/w", root="/w",
                commands=(command,), barrier=True,
            ),
            listener=silent,
            reconnect_s=0,
        )
        for node in nodes
    ]  # fmt: skip


class States:
    """The states that the processes of one attempt share."""

    def __init__(self) -> None:
        self.of: dict[str, MemberState] = {}

    def read(self) -> Mapping[str, MemberState]:
        return dict(self.of)

    def write(self, state: MemberState) -> MemberState:
        kept = self.of.get(state.node)
        self.of[state.node] = kept if kept is not None and kept.ended else state
        return self.of[state.node]


def driver(made: list[Member], *own: str, **fields: Any) -> AttemptDriver:
    """A process that watches the members of these nodes; without names, of all."""
    named = {member.name: member for member in made}
    fields = {"together": True, "cancel": threading.Event(), **fields}
    states = fields.pop("states", None) or States()
    return AttemptDriver(named, own or tuple(named), states, **fields)


def run(*nodes: ScriptedNode, together: bool = True) -> tuple[list[Member], list[bool]]:
    """The members, and for each collection of evidence whether all were still running."""
    made = members(*nodes)
    looks: list[bool] = []

    def look() -> None:
        looks.append(not any(node.stopped.is_set() for node in nodes))

    driven = driver(made, together=together, gather=look)
    driven.start_gang(60)
    assert driven.watch(60)
    return made, looks


class FullNode(ScriptedNode):
    """A node on whose full disk no job can be written."""

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        raise InfraError.of_node(self.node.name, "No space left on device")

    def start(self, spec: JobSpec) -> dict[str, Any]:
        raise InfraError.of_node(self.node.name, "No space left on device")

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        return {"state": "absent"}


class StagedNode(ScriptedNode):
    """A node whose job is staged until it is stopped."""

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        if not self.stopped.is_set():
            return {"state": "staged"}
        return {"state": "ended", "record": self.end(spec, reason=EndReason.STOPPED)["record"]}


class Witness(States):
    """After each state that the first process stores, the process of node b starts its part of the gang."""

    def __init__(self, *nodes: ScriptedNode) -> None:
        super().__init__()
        self.nodes = nodes
        self.found: list[tuple[str, str]] = []

    def write(self, state: MemberState) -> MemberState:
        stored = super().write(state)
        other = States()
        other.of = dict(self.of)
        second = driver(members(*self.nodes), "b", states=other)
        second.refresh()
        with pytest.raises(InfraError) as error:
            second.start_gang(60)
        self.found.append((error.value.node, error.value.message))
        return stored


def test_every_process_names_the_node_that_failed_to_start() -> None:
    """The process of b may find a stopped peer before the process of a has closed the attempt."""
    nodes = (StagedNode("a"), FullNode("b"))
    states = Witness(*nodes)
    with pytest.raises(InfraError, match="node b: No space left on device"):
        driver(members(*nodes), "a", states=states).start_gang(60)
    assert states.of["a"].record is not None
    assert states.of["a"].record.stopped_by is StoppedBy.PEER
    assert len(states.found) >= 3
    assert set(states.found) == {("b", "node b: No space left on device")}


def test_record_of_a_stopped_job_names_the_unready_node() -> None:
    made = members(ScriptedNode("a"), ScriptedNode("b"))
    driven = driver(made, states=(states := States()))
    late = "node b was not ready within 2 min"
    ends = ((drive.UNSTAGED, StoppedBy.PEER), (late, StoppedBy.STAGING))
    for member, (reason, by) in zip(made, ends, strict=True):
        stopped = ExitRecord(
            run="r", step="v/train", node=member.name, reason=EndReason.STOPPED, stopped_by=by,
            message=reason, ended_at=1.0,
        )  # fmt: skip
        member.record = stopped
        driven.keep(member)
    assert set(states.of) == {"a", "b"}
    with pytest.raises(InfraError, match="node b was not ready") as error:
        driven.start_gang(60)
    assert error.value.node == "b"


def test_failing_member_ends_its_peers_immediately() -> None:
    bad, other = ScriptedNode("a", code=7), ScriptedNode("b")
    made, looks = run(bad, other)
    assert other.reason == "a peer failed"
    assert looks == []
    root_cause = find_root_cause(made)
    assert root_cause is not None
    assert root_cause.name == "a"


def test_a_member_still_running_after_its_peers_failed_is_the_root_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decisions, "PEER_GRACE_S", 0.2)
    lost, stays = ScriptedNode("a", code=250), ScriptedNode("b")
    made, looks = run(lost, stays)
    assert looks == [True]
    assert "likely hung" in stays.reason
    root_cause = find_root_cause(made)
    assert root_cause is not None
    assert root_cause.name == "b"


def test_a_failure_within_the_grace_period_is_the_root_cause() -> None:
    made, looks = run(ScriptedNode("a", code=250), ScriptedNode("b", code=1))
    assert looks == []
    root_cause = find_root_cause(made)
    assert root_cause is not None
    assert root_cause.name == "b"


def test_all_members_are_inspected_once_when_one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ScriptedNode("a", hangs=True), ScriptedNode("b", hangs=True)

    def look() -> None:
        assert not first.stopped.is_set()
        looked.append(True)
        # Their runners end the jobs after enough inspections.
        for node in (first, second):
            node.stopped.set()

    looked: list[bool] = []
    driven = driver(members(first, second), gather=look)
    driven.start_gang(60)
    assert driven.watch(60)
    assert looked == [True]


def test_nodes_with_independent_parts_do_not_end_each_other() -> None:
    bad, slow = ScriptedNode("a", code=4), ScriptedNode("b", code=0)
    made, _ = run(bad, slow, together=False)
    assert not slow.stopped.is_set()
    assert [member.record.exit_code for member in made if member.record] == [4, 0]


def test_members_that_another_process_watches_are_queried_and_stopped() -> None:
    """The process of a failing member ends the gang, even if no process watches the other members."""
    bad, other = ScriptedNode("a", code=7), ScriptedNode("b")
    ended: list[dict[str, Any]] = []

    def poll(spec: JobSpec) -> dict[str, Any]:
        if other.stopped.is_set():
            record = other.end(spec, reason=EndReason.STOPPED)["record"]
            ended.append(record)
            return {"state": "ended", "record": record}
        return {"state": "running"}

    other.poll = poll  # type: ignore[method-assign]
    states = States()
    driven = driver(members(bad, other), "a", states=states)
    driven.start_gang(60)
    assert driven.watch(60)
    driven.end_peers()
    assert (other.reason, other.by) == ("a peer failed", StoppedBy.PEER)
    assert ended
    assert not driven.running
    assert {name: state.ended for name, state in states.of.items()} == {"a": True, "b": True}


def test_process_that_awaits_peers_ends_the_gang_of_a_failed_peer() -> None:
    """The task of the failing node may have died."""
    own, bad, other = ScriptedNode("a", code=0), ScriptedNode("b"), ScriptedNode("c")

    def poll(spec: JobSpec) -> dict[str, Any]:
        record = other.end(spec, reason=EndReason.STOPPED)["record"] if other.stopped.is_set() else None
        return {"state": "ended" if record else "running", "record": record}

    other.poll = poll  # type: ignore[method-assign]
    states, made = States(), members(own, bad, other)
    driven = driver(made, "a", states=states)
    driven.start_gang(60)
    record = ExitRecord(run="r", step="v/train", node="b", reason=EndReason.EXITED, exit_code=7)
    states.write(MemberState(node="b", released=True, record=record))
    assert driven.watch(60)
    assert driven.await_peers(60)
    assert (other.reason, other.by) == ("a peer failed", StoppedBy.PEER)


@pytest.mark.slow
def test_a_watch_that_is_over_leaves_the_job_running() -> None:
    class Slow(ScriptedNode):
        def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
            yield {"event": "log", "data": "x", "offset": 0, "size": 7}
            self.stopped.wait(seconds)

    node = Slow("a")
    (made,) = members(node)
    driven = driver([made], together=False)
    driven.start([made], 0.1)
    assert not driven.watch(0.3)
    assert not node.stopped.is_set()
    assert made.log_bytes == {"": 7}


@pytest.mark.slow
def test_user_ends_a_running_gang() -> None:
    nodes, cancel = (ScriptedNode("a"), ScriptedNode("b")), threading.Event()
    driven = driver(members(*nodes), cancel=cancel)
    driven.start_gang(60)
    threading.Timer(0.3, cancel.set).start()
    assert driven.watch(60)
    assert {(node.reason, node.by) for node in nodes} == {("stopped by a user", StoppedBy.USER)}


def test_a_gang_that_a_user_stopped_before_never_starts() -> None:
    nodes, cancel = (ScriptedNode("a"), ScriptedNode("b")), threading.Event()
    cancel.set()
    driven = driver(members(*nodes), cancel=cancel)
    for node in nodes:
        node.poll = lambda _: {"state": "absent"}  # type: ignore[method-assign]
    with pytest.raises(InfraError, match="stopped before it started"):
        driven.start_gang(60)
    assert [member.lost for member in driven.members] == [
        f"node {name}: job not started on this node" for name in "ab"
    ]
    assert not any(node.went.is_set() for node in nodes)
