"""A connection that is made while something else is done."""

import threading

import pytest

from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.execute.node.session import NodeSession
from tipcflow.transport import Transport

DEADLINE_S = 60.0
NODE = Node(name="a", address="a", ssh=SshTarget(alias="a"), workspace="/w", python="/usr/bin/python3")


class Connection:
    """Of all of it, only that it was closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


class Connects:
    """Connects when it may."""

    def __init__(self, error: InfraError | None = None) -> None:
        self.may, self.made, self.error = threading.Event(), list[Connection](), error

    def __call__(self, _: Node) -> Transport:
        assert self.may.wait(DEADLINE_S)
        if self.error:
            raise self.error
        self.made.append(Connection())
        return self.made[-1]  # type: ignore[return-value]


def test_first_request_waits_for_the_connection() -> None:
    connects = Connects()
    session = NodeSession(NODE, connects)
    session.connect_ahead()
    threading.Timer(0.05, connects.may.set).start()
    first = session.transport
    assert session.transport is first
    assert len(connects.made) == 1
    session.close()
    assert connects.made[0].closed.is_set()


def test_connection_error_is_raised_and_next_request_retries() -> None:
    connects = Connects(InfraError("node a: no", node="a"))
    connects.may.set()
    session = NodeSession(NODE, connects)
    session.connect_ahead()
    with pytest.raises(InfraError, match="node a: no"):
        _ = session.transport
    connects.error = None
    assert session.transport is connects.made[0]


def test_connection_made_after_close_is_closed() -> None:
    connects = Connects()
    session = NodeSession(NODE, connects)
    session.connect_ahead()
    session.close()
    connects.may.set()
    while not connects.made:
        threading.Event().wait(0.01)
    assert connects.made[0].closed.wait(DEADLINE_S)
