"""Parameter servers run until the trainers of all nodes have succeeded."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.execute.attempt.test_drive import ScriptedNode, driver, members

from tipcflow.domain import EndReason, InfraError, JobSpec
from tipcflow.execute.attempt import servers


class ServerNode(ScriptedNode):
    """A node whose trainers succeed, after those of another one, and whose server ends on request."""

    def __init__(
        self, name: str, *, after: "ServerNode | None" = None, fails: bool = False, away: int = 0
    ) -> None:
        super().__init__(name)
        self.after, self.fails, self.away = after, fails, away
        self.trained, self.finished = threading.Event(), threading.Event()
        self.too_early = False

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        return {"state": "running", "heartbeat": {"trained": self.trained.is_set()}}

    def finish(self, spec: JobSpec) -> None:
        if self.away:
            self.away -= 1
            raise InfraError("node a does not respond")
        self.finished.set()

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        assert self.went.wait(60)
        if self.after:
            assert self.after.trained.wait(60)
            self.too_early = self.after.finished.wait(0.1)
        if self.fails:
            yield self.end(spec, reason=EndReason.EXITED, exit_code=17)
            return
        self.trained.set()
        yield {"event": "trained"}
        end = time.monotonic() + seconds
        while not self.finished.wait(0.01):
            if time.monotonic() > end:
                return
            if self.stopped.is_set():
                yield self.end(spec, reason=EndReason.STOPPED)
                return
        yield self.end(spec, reason=EndReason.EXITED, exit_code=0, servers_finished=1)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "EVERY_S", 0.02)


@pytest.mark.parametrize("away", [0, 2])
def test_servers_end_when_all_trainers_have_succeeded(away: int) -> None:
    first = ServerNode("a", away=away)
    last = ServerNode("b", after=first)
    made = members(first, last)
    driven = driver(made)
    driven.start_gang(60)
    assert driven.watch(60)
    assert not last.too_early
    assert [member.record.servers_finished for member in made if member.record] == [1, 1]


def test_servers_of_a_failed_training_are_stopped_with_the_gang() -> None:
    first = ServerNode("a")
    made = members(first, ServerNode("b", after=first, fails=True))
    driven = driver(made)
    driven.start_gang(60)
    assert driven.watch(60)
    assert not first.finished.is_set()
    assert first.reason == "a peer failed"


def test_a_process_with_one_node_queries_the_others() -> None:
    first, other = ServerNode("a"), ServerNode("b")
    made = members(first, other)
    driven = driver(made, "a")
    for member in made:
        member.released = True
    first.went.set()
    assert not driven.watch(0.2)
    assert not first.finished.is_set()
    other.trained.set()
    assert driven.watch(60)
    assert not other.finished.is_set(), "its own process ends its servers"
