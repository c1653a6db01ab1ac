"""All runs choose ports in one order; a node that its peers miss is queried."""

from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow.domain import Cluster, InfraError, Node, NodeFacts
from tipcflow.execute.run.inspection import _check_missed_peers, _older_runs, inspect


def older(run: str, *leases: tuple[str, int]) -> list[str]:
    rows = [SimpleNamespace(run=name, fence=fence) for name, fence in leases]
    return _older_runs(SimpleNamespace(leases=SimpleNamespace(all=lambda: rows)), run)  # type: ignore[arg-type]


def test_only_runs_with_older_leases_choose_before() -> None:
    leases = [("late", 9), ("own", 5), ("own", 5), ("early", 2), ("earlier", 1)]
    assert older("own", *leases) == ["earlier", "early"]
    assert older("earlier", *leases) == []
    assert older("late", *leases) == ["earlier", "early", "own"]


class Answers:
    """Nodes of which some are reachable from the controller."""

    def __init__(self, *silent: str) -> None:
        self._silent, self.requests = silent, list[str]()

    def __getitem__(self, name: str) -> Any:
        def check_responds() -> None:
            self.requests.append(name)
            if name in self._silent:
                raise InfraError.of_node(name, "the connection is lost", passing=True)

        return SimpleNamespace(check_responds=check_responds)


@pytest.fixture
def missed() -> tuple[Cluster, list[NodeFacts]]:
    """Node b cannot reach node a."""
    common = {"python": "/env/bin/python", "workspace": "/var/tmp/w"}
    a, b = (Node(name=name, address=f"10.0.0.{number}", **common) for number, name in enumerate("ab", 1))
    made = Cluster(name="lab", nodes=(a, b))
    return made, [NodeFacts(node=a.name), NodeFacts(node=b.name, unreachable={a.address: "timed out"})]


def test_a_node_that_responds_to_no_node_is_the_cause(missed: tuple[Cluster, list[NodeFacts]]) -> None:
    made, facts = missed
    first, second = made.nodes[0].name, made.nodes[1].name
    with pytest.raises(InfraError) as raised:
        _check_missed_peers(made, facts, Answers(first))  # type: ignore[arg-type]
    result = f"node {first}: the connection is lost; node {second} cannot reach it either"
    assert (raised.value.node, raised.value.message, raised.value.passing) == (first, result, True)


def test_a_node_that_responds_to_the_controller_is_not(missed: tuple[Cluster, list[NodeFacts]]) -> None:
    made, facts = missed
    nodes = Answers(made.nodes[1].name)
    _check_missed_peers(made, facts, nodes)  # type: ignore[arg-type]
    assert nodes.requests == [made.nodes[0].name]


def inspected(*reports: NodeFacts, device: str = "cpu") -> tuple[list[str], int]:
    """What a run notes if its only node gives these reports, and how many it requested.

    Raises:
        InfraError: of the preconditions.
    """
    node = Node(name="a", address="10.0.0.1", python="/env/bin/python", workspace="/var/tmp/w", device=device)
    left, lines = list(reports), list[str]()
    resolved = SimpleNamespace(
        cluster=Cluster(name="lab", nodes=(node,)),
        request=SimpleNamespace(framework=""),
        suite=SimpleNamespace(framework=""),
        build=None,
    )
    store = SimpleNamespace(nodes=SimpleNamespace(save=lambda run, fact: None))
    nodes = SimpleNamespace(facts=lambda: [left.pop(0)])
    inspect(store, "r", resolved, nodes, lines.append)  # type: ignore[arg-type]
    return lines[1:], len(reports) - len(left)


WHOLE = NodeFacts(node="a", python="3.11.7", disk_free_bytes=1 << 40)


@pytest.mark.parametrize(
    ("late", "device", "reported"),
    [
        (("software",), "cpu", "software"),
        (("machine",), "cpu", "machine"),
        (("machine", "gpus", "software"), "gpu", "gpus and software and machine"),
    ],
)
def test_facts_of_a_busy_node_are_requested_twice(late: tuple[str, ...], device: str, reported: str) -> None:
    gpus = ({"uuid": "GPU-1"},) if device == "gpu" else ()
    whole = WHOLE.model_copy(update={"gpus": gpus})
    lines, requested = inspected(whole.model_copy(update={"unfinished": late}), whole, device=device)
    assert requested == 2
    assert lines[0] == f"node a did not report its {reported} in time; retrying once"


def test_parts_that_the_run_does_not_need_are_not_awaited() -> None:
    assert inspected(WHOLE.model_copy(update={"unfinished": ("gpus", "engines")})) == ([], 1)


def test_a_node_that_is_late_twice_ends_the_run() -> None:
    late = NodeFacts(node="a", unfinished=("software",))
    with pytest.raises(InfraError) as raised:
        inspected(late, late)
    assert raised.value.message == "node a did not report its software in time"
