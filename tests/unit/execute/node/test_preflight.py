"""What must hold on the nodes: each failure is one sentence that names the node."""

from typing import Any

import pytest

from tipcflow.domain import Cluster, ConfigError, FailureClass, InfraError, Node, NodeFacts
from tipcflow.execute.node.preflight import check_nodes, parse_framework


def cluster(**settings: Any) -> Cluster:
    common = {"python": "/env/bin/python", "workspace": "/var/tmp/w", **settings}
    return Cluster(
        name="lab",
        nodes=tuple(Node(name=name, address=f"10.0.0.{n}", **common) for n, name in enumerate("ab", start=1)),
    )


def facts(**changes: Any) -> list[NodeFacts]:
    """Facts of a and b; `changes` are b's."""
    good: dict[str, Any] = {
        "python": "3.11.7",
        "framework": "paddle",
        "framework_version": "3.3.1",
        "disk_free_bytes": 10**10,
    }
    return [NodeFacts(node="a", **good), NodeFacts(node="b", **{**good, **changes})]


def check(found: list[NodeFacts], wanted: str = "", **settings: Any) -> list[str]:
    requirement = parse_framework(wanted) if wanted else None
    return check_nodes(cluster(**settings), found, framework="paddlepaddle", requirement=requirement)


def test_healthy_nodes_report_nothing() -> None:
    assert check(facts(), "paddlepaddle>=3,<4") == []


def test_a_clock_that_is_off_is_shown_not_fatal() -> None:
    assert check(facts(clock_skew_s=-61.0)) == ["the clock of node b is 61 s behind"]


def test_nodes_on_one_gpu_are_reported() -> None:
    found = facts(gpus=({"uuid": "GPU-1"},))
    found[0] = found[0].model_copy(update={"gpus": ({"uuid": "GPU-1"}, {"uuid": "GPU-2"})})
    shared = ["nodes a and b use the same GPU (GPU-1): NCCL refuses two ranks on one GPU"]
    assert check(found, device="gpu", slots=1) == shared
    other = [found[0], facts(gpus=({"uuid": "GPU-2"},))[1]]
    assert check(other, device="gpu", slots=1) == [], "GPU-2 is no slot of node a"
    assert check(found, slots=1) == [], "nodes that train on the CPU"


@pytest.mark.parametrize(
    ("changes", "settings", "wanted", "words"),
    [
        ({"unreachable": {"10.0.0.1": "no route"}}, {}, "", "node b cannot reach node a: no route"),
        ({"unfinished": ("software",), "python": ""}, {}, "", "node b did not report its software in time"),
        ({"python": ""}, {}, "", "node b has no working Python at /env/bin/python"),
        ({"framework": "", "framework_version": ""}, {}, "", "node b: /env/bin/python has no paddlepaddle"),
        ({"framework": "torch"}, {}, "", "node b: /env/bin/python has no paddlepaddle"),
        ({"framework_version": "3.2.0"}, {}, "", "different paddlepaddle versions: a has 3.3.1, b has 3.2.0"),
        ({}, {}, "paddlepaddle==2.6.2", "node a has paddlepaddle 3.3.1, the run requires paddlepaddle==2.6.2"),
        ({}, {}, "torch", "node a has no torch, the run requires torch"),
        (
            {"disk_free_bytes": 2**20},
            {},
            "",
            "node b: the disk of /var/tmp/w is full: 1.0 MiB free, 256.0 MiB needed",
        ),
        ({}, {"device": "gpu", "slots": 2}, "", "node a is declared with 2 GPUs but shows 0"),
    ],
)
def test_preflight_failure_names_the_node(
    changes: dict[str, Any], settings: dict[str, Any], wanted: str, words: str
) -> None:
    with pytest.raises(InfraError) as caught:
        check(facts(**changes), wanted, **settings)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("changes", "wanted", "kind"),
    [
        ({"python": ""}, "", FailureClass.ENVIRONMENT),
        ({"framework": "", "framework_version": ""}, "", FailureClass.ENVIRONMENT),
        ({}, "torch", FailureClass.ENVIRONMENT),
        ({"disk_free_bytes": 2**20}, "", FailureClass.DISK),
        ({"unreachable": {"10.0.0.1": "no route"}}, "", None),
    ],
)
def test_preflight_failure_has_a_class(changes: dict[str, Any], wanted: str, kind: FailureClass | None) -> None:
    with pytest.raises(InfraError) as caught:
        check(facts(**changes), wanted)
    assert caught.value.failure_class is kind


def test_an_environment_with_two_frameworks_serves_suites_of_both() -> None:
    both = {"framework": "paddle", "frameworks": {"paddle": "3.3.1", "torch": "2.13.0"}}
    nodes = [fact.model_copy(update=both) for fact in facts()]
    for framework in ("paddlepaddle", "torch"):
        assert check_nodes(cluster(), nodes, framework=framework, requirement=None) == []


def test_invalid_framework_requirement_is_an_error() -> None:
    with pytest.raises(ConfigError, match="--framework: is not a valid requirement"):
        parse_framework("paddle paddle")
