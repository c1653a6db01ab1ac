"""The wait limits of controllers and nodes reach the code that waits."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.stories import TRAIN, a_plan

from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.waits import Waits
from tipcflow.domain import Cluster, Node
from tipcflow.execute.job.spec import job_spec
from tipcflow.execute.node.nodes import Nodes

POLICIES = Path(__file__).parents[3] / "configs" / "policies"
NODE = Node(name="node-a", address="192.0.2.1", slots=4, python="/usr/bin/python3", workspace="/w")


@pytest.mark.parametrize("name", ["pr", "weekly"])
def test_shipped_policies_wait_as_documented(name: str) -> None:
    waits = load_yaml(POLICIES / f"{name}.yaml", Policy).waits
    assert waits == Waits(node_lease_s=600, reconnect_s=120, silence_s=20, lease_ttl_s=120)
    assert waits.peers_every_s * 2 < waits.node_lease_s, "one question may be lost"


def test_override_raises_the_waits_of_a_model() -> None:
    override = {"model": "slow", "because": "its nodes are far away", "set": {"waits": {"silence_s": 60}}}
    policy = Policy.model_validate({"name": "p", "waits": {"reconnect_s": 7}, "overrides": [override]})
    assert policy.for_model("s", "slow").waits == Waits(reconnect_s=7, silence_s=60)
    assert policy.for_model("s", "quick").waits == Waits(reconnect_s=7)


@pytest.mark.parametrize(
    "wrong", [{"node_lease_s": 1}, {"silence_s": 1}, {"lease_ttl_s": float("inf")}, {"reconnect_s": -1}, {"x": 1}]
)
def test_waits_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({"name": "p", "waits": wrong})


def test_a_job_carries_the_nodes_lease() -> None:
    plan = a_plan()
    spec = job_spec(plan, plan.step(TRAIN), NODE, run="r", attempt=1, fence=1, lease_s=9.0)
    assert spec.lease_s == 9.0
    assert job_spec(plan, plan.step(TRAIN), NODE, run="r", attempt=1, fence=1).lease_s == 600.0


def test_sessions_are_silent_for_as_long_as_the_policy_allows() -> None:
    waits = Waits(silence_s=4, reconnect_s=2)
    nodes = Nodes(Cluster(name="c", nodes=(NODE,)), ["node-a"], waits=waits)
    heard: list[float] = []

    class Line:
        def stream(self, command: str, *, timeout: float, **_: object) -> None:
            heard.append(timeout)
            raise ConnectionError

        def close(self) -> None: ...

    session = nodes["node-a"]
    session._transport = Line()  # type: ignore[assignment]
    plan = a_plan()
    with pytest.raises(ConnectionError):
        next(session.watch(job_spec(plan, plan.step(TRAIN), NODE, run="r", attempt=1, fence=1), {}, 1.0))
    assert (heard, nodes.reconnect_s) == ([4.0], 2.0)
