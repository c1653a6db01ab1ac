from tests.support.stories import a_plan

from tipcflow.domain import Cluster, Node
from tipcflow.execute.job.spec import slots_needed


def a_node(name: str, address: str, slots: int) -> Node:
    return Node(name=name, address=address, slots=slots, python="/usr/bin/python3", workspace="/w")


CLUSTER = Cluster(
    name="c",
    nodes=(a_node("node-a", "192.0.2.1", 4), a_node("node-b", "192.0.2.2", 2), a_node("x", "192.0.2.3", 8)),
)


def test_slots_are_from_the_steps_or_all_nodes() -> None:
    plan = a_plan()
    used = slots_needed(plan, CLUSTER)
    assert used == [("192.0.2.1", 0), ("192.0.2.2", 0)]
    whole = [("192.0.2.1", slot) for slot in range(4)] + [("192.0.2.2", slot) for slot in range(2)]
    assert slots_needed(plan, CLUSTER, whole_nodes=True) == whole
    idle = plan.model_copy(update={"steps": ()})
    assert slots_needed(idle, CLUSTER, whole_nodes=True) == []
