"""The check between nodes, while a peer's sshd restarts."""

from typing import Any

import pytest

from tipcflow.config.waits import Waits
from tipcflow.domain import Cluster, Node, NodeFacts, SshTarget
from tipcflow.execute.node import nodes as module
from tipcflow.execute.node.nodes import Nodes

NODE = Node(name="a", address="192.0.2.1", ssh=SshTarget(alias="a"), workspace="/w", python="/usr/bin/python3")
REFUSED = {"192.0.2.2": "192.0.2.2 port 22: Connection refused (the host responds to ping)"}


class Session:
    """Reports the peer as unreachable for a number of times."""

    node = NODE

    def __init__(self, times: int) -> None:
        self.left = times
        self.requests = 0

    def facts(self, peers: dict[str, str]) -> NodeFacts:
        self.requests += 1
        self.left -= 1
        return NodeFacts(node="a", unreachable=REFUSED if self.left >= 0 else {})


@pytest.mark.parametrize(("times", "requests"), [(0, 1), (2, 3)])
def test_an_unreachable_peer_is_queried_again(monkeypatch: pytest.MonkeyPatch, times: int, requests: int) -> None:
    monkeypatch.setattr(module, "PEER_EVERY_S", 0.0)
    session: Any = Session(times)
    nodes = Nodes(Cluster(name="c", nodes=(NODE,)), ["a"], waits=Waits())
    nodes._sessions = {"a": session}
    (facts,) = nodes.facts()
    assert (facts.unreachable, session.requests) == ({}, requests)


def test_a_peer_that_stays_unreachable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PEER_EVERY_S", 0.0)
    monkeypatch.setattr(module, "SHORT_QUERY_S", 0.05)
    session: Any = Session(10**9)
    nodes = Nodes(Cluster(name="c", nodes=(NODE,)), ["a"], waits=Waits())
    nodes._sessions = {"a": session}
    (facts,) = nodes.facts()
    assert facts.unreachable == REFUSED
