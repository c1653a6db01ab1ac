"""The end of a run on its nodes: leftovers are ended and reported; slots of what cannot be ended stay leased."""

from typing import Any

import pytest

from tipcflow.config.waits import Waits
from tipcflow.domain import Attempt, Cluster, InfraError, Node
from tipcflow.domain.run.names import JobId
from tipcflow.execute.node.nodes import Nodes, remaining_messages

RUN, JOB = "r1", "r1/v/train/1"
MINE = {"pid": 7, "job": JOB, "cmdline": "python train.py", "user": "trainer"}
OTHERS = {"pid": 8, "job": "r2/v/train/1", "cmdline": "python other.py"}
CONTAINER = {"job": JOB, "container": "tipcflow-x", "removed": False, "message": "no answer"}


class ScriptedNode:
    """A node with the given listings and reaped processes."""

    was_connected = True

    def __init__(self, node: Node, *processes: dict[str, Any], left: tuple[Any, ...] = (), **more: Any) -> None:
        self.node, self.processes, self.left = node, list(processes), list(left)
        self.containers, self.away = more.get("containers", []), more.get("away", "")
        self.helpers, self.left_helpers, self.helped = more.get("helpers", []), more.get("left_helpers", []), False
        self.reaped: list[str] = []
        self.unclaimed: list[str] = []

    def list_ours(self) -> dict[str, Any]:
        if self.away:
            raise InfraError(f"node {self.node.name} does not respond")
        return {"processes": self.processes, "jobs": [], "helpers": self.helpers}

    def reap(self, job: JobId) -> dict[str, Any]:
        self.reaped.append(str(job))
        return {"left": self.left, "killed": [], "containers": self.containers}

    def unclaim(self, run: str) -> dict[str, str]:
        self.unclaimed.append(run)
        return {}

    def end_helpers(self) -> dict[str, Any]:
        self.helped = True
        return {"helpers": [], "left": self.left_helpers}


@pytest.fixture
def node() -> Node:
    return Node(name="a", address="192.0.2.1", python="/usr/bin/python3", workspace="/w")


def nodes_with(report: ScriptedNode) -> Nodes:
    made = Nodes(Cluster(name="c", nodes=(report.node,)), ["a"], waits=Waits())
    made._sessions = {"a": report}  # type: ignore[dict-item]
    return made


def attempt() -> Attempt:
    return Attempt(run=RUN, step="v/train", attempt=1, nodes=("a",), started_at=1.0)


def test_leftovers_are_ended_and_reported_and_others_stay(node: Node) -> None:
    report = ScriptedNode(node, MINE, OTHERS)
    nodes = nodes_with(report)
    assert nodes.clean(RUN) == ["processes of the run were left on node a and were ended: 7 (python train.py)"]
    assert (report.reaped, report.unclaimed) == ([JOB], [RUN])
    assert nodes.may_hold([attempt()]) == set()


def test_an_empty_node_reports_nothing(node: Node) -> None:
    report = ScriptedNode(node, OTHERS)
    assert nodes_with(report).clean(RUN) == []
    assert (report.reaped, report.unclaimed) == ([], [RUN])


@pytest.mark.parametrize(
    ("left", "containers", "words"),
    [
        ((MINE,), [], "pid 7 (python train.py, user trainer)"),
        ((), [CONTAINER], "container tipcflow-x (no answer)"),
        (
            (MINE,),
            [CONTAINER, CONTAINER | {"removed": True}],
            "pid 7 (python train.py, user trainer), container tipcflow-x (no answer)",
        ),
    ],
)
def test_remaining_processes_keep_slots_and_claim(node: Node, left: Any, containers: Any, words: str) -> None:
    report = ScriptedNode(node, MINE, left=left, containers=containers)
    nodes = nodes_with(report)
    assert nodes.clean(RUN) == [f"still on node a after SIGKILL: {words}; its slots stay leased"]
    assert report.unclaimed == []
    assert nodes.may_hold([attempt()]) == {"192.0.2.1"}
    assert nodes.may_hold([]) == set(), "nothing was tried there"


def test_abandoned_helpers_are_ended_and_others_spared(node: Node) -> None:
    upload = {"pid": 9, "helper": "upload", "cmdline": "cat", "user": "trainer", "over": False}
    report = ScriptedNode(node, helpers=[upload])
    assert (nodes_with(report).clean(RUN), report.helped) == ([], False)
    report = ScriptedNode(node, helpers=[upload | {"over": True}])
    assert (nodes_with(report).clean(RUN), report.helped) == ([], True)
    report = ScriptedNode(node, helpers=[upload | {"over": True}], left_helpers=[upload])
    assert nodes_with(report).clean(RUN) == [
        "still on node a after SIGKILL: pid 9 (cat, user trainer); its slots stay leased"
    ]


def test_a_node_that_cannot_be_listed_keeps_its_slots(node: Node) -> None:
    nodes = nodes_with(ScriptedNode(node, away="yes"))
    assert nodes.clean(RUN) == ["node a could not be listed for leftovers: node a does not respond"]
    assert nodes.may_hold([attempt()]) == {"192.0.2.1"}


def test_a_runner_that_knows_no_containers() -> None:
    assert remaining_messages({"left": [MINE]}) == ["pid 7 (python train.py, user trainer)"]
    assert remaining_messages({"left": [], "containers": [CONTAINER | {"removed": True}]}) == []
