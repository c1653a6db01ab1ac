"""Frameworks that a cluster file promises and a node does not have."""

from tipcflow.domain import Node, NodeFacts
from tipcflow.execute.node.health import NodeHealth


def troubles(*declared: str, unfinished: tuple[str, ...] = (), **facts: object) -> list[str]:
    common = {"name": "a", "address": "192.0.2.1", "python": "/p", "workspace": "/w"}
    node = Node.model_validate({**common, "frameworks": declared or None})
    told_by_node = {"node": "a", "disk_free_bytes": 10**12, "unfinished": unfinished, **facts}
    return NodeHealth(node=node, facts=NodeFacts.model_validate(told_by_node)).troubles


def test_missing_frameworks_are_named() -> None:
    paddle = {"framework": "paddle", "framework_version": "3.3.1"}
    assert troubles("paddlepaddle", **paddle) == []
    assert troubles(**paddle) == []
    assert troubles("torch", "paddlepaddle", **paddle) == ["frameworks configured, but not found: torch"]
    both = {**paddle, "frameworks": {"paddle": "3.3.1", "torch": "2.13.0"}}
    assert troubles("torch", "paddlepaddle", **both) == []


def test_software_that_was_not_reported_is_not_missing() -> None:
    assert troubles("torch", unfinished=("software",)) == ["no report in time: software"]
