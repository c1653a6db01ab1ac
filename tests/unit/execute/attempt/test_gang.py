"""A gang with nodes that are only told of: who is stopped when, and that all are looked at before."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tipcflow.domain import EndReason, ExitRecord, InfraError, JobCommand, JobSpec, Node, SshTarget, StoppedBy
from tipcflow.execute.attempt import gang
from tipcflow.execute.attempt.gang import Gang
from tipcflow.execute.failure.root_cause import culprit
from tipcflow.execute.job.member import Member
from tipcflow.execute.progress import silent

DEADLINE_S = 60.0


class ToldNode:
    """A node whose job ends as told: by itself, when it is stopped, or never."""

    def __init__(self, name: str, *, code: int | None = None, hangs: bool = False) -> None:
        self.node = Node(
            name=name, address=name, ssh=SshTarget(alias=name), workspace="/w", python="/usr/bin/python3"
        )
        self.code, self.hangs = code, hangs
        self.went, self.stopped = threading.Event(), threading.Event()
        self.reason = ""
        self.by: StoppedBy | None = None

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        yield {"event": "answer", "state": "staged"}
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
        return {"why": "asked"}

    def reconnect(self) -> None:
        raise InfraError("no")


def members(*nodes: ToldNode) -> list[Member]:
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


def run(*nodes: ToldNode, together: bool = True) -> tuple[list[Member], list[bool]]:
    """The members, and for each look at them whether all were still there."""
    made = members(*nodes)
    looks: list[bool] = []

    def look() -> None:
        looks.append(not any(node.stopped.is_set() for node in nodes))

    Gang(made, threading.Event(), together=together, look=look).run()
    return made, looks


def test_one_that_fails_ends_the_others_without_waiting() -> None:
    bad, other = ToldNode("a", code=7), ToldNode("b")
    made, looks = run(bad, other)
    assert other.reason == "a peer failed"
    assert looks == []
    blamed = culprit(made)
    assert blamed is not None
    assert blamed.name == "a"


def test_one_that_goes_on_after_its_peers_gave_up_is_looked_at_and_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "PEER_GRACE_S", 0.2)
    victim, stays = ToldNode("a", code=250), ToldNode("b")
    made, looks = run(victim, stays)
    assert looks == [True]
    assert "likely hung" in stays.reason
    blamed = culprit(made)
    assert blamed is not None
    assert blamed.name == "b"


def test_the_culprit_that_shows_itself_within_the_grace_is_blamed() -> None:
    made, looks = run(ToldNode("a", code=250), ToldNode("b", code=1))
    assert looks == []
    blamed = culprit(made)
    assert blamed is not None
    assert blamed.name == "b"


def test_all_are_looked_at_once_when_one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ToldNode("a", hangs=True), ToldNode("b", hangs=True)

    def look() -> None:
        assert not first.stopped.is_set()
        looked.append(True)
        # What their runners do when they were looked at for long enough.
        for node in (first, second):
            node.stopped.set()

    looked: list[bool] = []
    Gang(members(first, second), threading.Event(), look=look).run()
    assert looked == [True]


def test_nodes_that_do_the_same_beside_each_other_do_not_end_each_other() -> None:
    bad, slow = ToldNode("a", code=4), ToldNode("b", code=0)
    made, _ = run(bad, slow, together=False)
    assert not slow.stopped.is_set()
    assert [member.record.exit_code for member in made if member.record] == [4, 0]
