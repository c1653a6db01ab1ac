"""Queries of a node whose processes end in the meantime."""

import pytest

from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.execute.node.session import NodeSession
from tipcflow.transport import Completed, Transport

NODE = Node(name="a", address="a", ssh=SshTarget(alias="a"), workspace="/w", python="/usr/bin/python3")


class Connection:
    """Every command on it ends in the same way."""

    def __init__(self, result: Completed) -> None:
        self.result = result

    def run(self, command: str, **_: object) -> Completed:
        return self.result

    def close(self) -> None:
        """Nothing to close."""


class Connects:
    """One connection after the other."""

    def __init__(self, *results: Completed) -> None:
        self.results, self.made = list(results), 0

    def __call__(self, _: Node) -> Transport:
        self.made += 1
        return Connection(self.results.pop(0))  # type: ignore[return-value]


ENDED, ANSWERED = Completed(-1, b"", b""), Completed(0, b"{}", b"")


def test_a_command_that_a_shutdown_ended_runs_again_over_a_new_connection() -> None:
    connects = Connects(ENDED, ANSWERED)
    assert NodeSession(NODE, connects).call("list", "list its processes") == b"{}"
    assert connects.made == 2


def test_a_command_that_always_ends_by_a_signal_is_an_error() -> None:
    connects = Connects(*[ENDED] * 9)
    with pytest.raises(InfraError, match="node a could not list its processes: ended by a signal"):
        NodeSession(NODE, connects).call("list", "list its processes")
    assert connects.made <= 3


def test_facts_that_cannot_be_used_name_the_node_and_the_keys() -> None:
    connects = Connects(Completed(0, b'{"cpu_count": "many", "clock": 0}', b""))
    with pytest.raises(InfraError, match="node a: reported unusable facts: cpu_count"):
        NodeSession(NODE, connects).facts({})
