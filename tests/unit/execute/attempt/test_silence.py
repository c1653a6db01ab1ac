"""A node that is silent but cannot decide alone whether its training hangs: its peers are queried."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.execute.attempt.test_drive import ScriptedNode, driver, members

from tipcflow.domain import EndReason, InfraError, JobSpec
from tipcflow.execute.attempt import drive

WHY = "no progress: nothing new in log/workerlog.0 (rank 2) for 120 s"
HANG_S = 120.0


class SilentNode(ScriptedNode):
    """A node whose runner reports silence, and continues as its controller reports about the peers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.words: list[bool] = []
        self.told = threading.Event()

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        assert self.went.wait(60)
        yield {"event": "hang", "message": WHY, "unsure": True}
        assert self.told.wait(60)
        if self.words[-1]:
            yield self.end(spec, reason=EndReason.EXITED, exit_code=0)
        else:
            yield self.end(spec, reason=EndReason.HANG, message=WHY)

    def report_peers(self, spec: JobSpec, *, active: bool) -> None:
        self.words.append(active)
        self.told.set()


class PrintingNode(ScriptedNode):
    """A node whose rank prints; its job ends when the silent node has heard of it."""

    def __init__(self, name: str, idle_s: float, other: SilentNode, *, away: int = 0) -> None:
        super().__init__(name)
        self.idle_s, self.other, self.away = idle_s, other, away

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        if self.went.is_set() and self.away:
            self.away -= 1
            raise InfraError("node a does not respond")
        progress = {"log/workerlog.0": {"size": 100, "idle_s": self.idle_s, "epoch": 1, "iteration": 4}}
        return {"state": "staged", "heartbeat": {"progress": progress}}

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        assert self.went.wait(60)
        assert self.other.told.wait(60)
        yield self.end(spec, reason=EndReason.EXITED, exit_code=0)


def run(idle_s: float, *, away: int = 0) -> tuple[SilentNode, list[bool], str]:
    silent = SilentNode("b")
    looked: list[bool] = []
    made = members(PrintingNode("a", idle_s, silent, away=away), silent)
    for member in made:
        member.spec = member.spec.model_copy(update={"hang_s": HANG_S})
    driven = driver(made, gather=lambda: looked.append(True))
    driven.start_gang(60)
    assert driven.watch(60)
    return silent, looked, made[1].hangs


def test_a_peer_that_makes_progress_clears_a_silent_node() -> None:
    silent, looked, hangs = run(idle_s=2.0)
    assert (silent.words, looked, hangs) == ([True], [], "")


def test_a_node_hangs_if_its_peers_are_silent_too() -> None:
    silent, looked, hangs = run(idle_s=HANG_S)
    assert (silent.words, hangs) == ([False], WHY)
    assert looked == [True]


def test_a_peer_that_does_not_respond_is_queried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "SETTLE_EVERY_S", 0.0)
    silent, looked, _ = run(idle_s=2.0, away=2)
    assert (silent.words, looked) == ([True], [])
