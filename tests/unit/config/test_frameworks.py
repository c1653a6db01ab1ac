"""Whether a cluster has the framework of a suite."""

from pathlib import Path

import pytest

from tipcflow.config.cluster import missing_framework, require_framework
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import Cluster, ConfigError

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def torch_suite() -> Suite:
    return load_suite("pytorch_multinode", ROOT / "configs")


def cluster(*frameworks: tuple[str, ...] | None) -> Cluster:
    common = {"python": "/env/bin/python", "workspace": "/srv/t"}
    nodes = [
        {"name": name, "address": f"192.0.2.{number}", "frameworks": has, **common}
        for number, (name, has) in enumerate(zip("abc", frameworks, strict=False), start=1)
    ]
    return Cluster.model_validate({"name": "lab", "nodes": nodes})


PADDLE, TORCH, BOTH = ("paddlepaddle",), ("torch",), ("paddlepaddle", "torch")


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ((PADDLE, PADDLE), "cluster lab has no torch"),
        (((), PADDLE), "cluster lab has no torch"),
        ((BOTH, PADDLE, TORCH), "node b of cluster lab has no torch"),
        ((TORCH, BOTH), ""),
        # Nothing is declared: the inspection of the nodes decides.
        ((None, None), ""),
    ],
)
def test_the_reason_why_a_suite_cannot_run_is_named(
    torch_suite: Suite, nodes: tuple[tuple[str, ...] | None, ...], why: str
) -> None:
    assert missing_framework(torch_suite, cluster(*nodes)) == why


def test_a_suite_without_a_framework_runs_everywhere(torch_suite: Suite) -> None:
    own = torch_suite.model_copy(update={"framework": ""})
    assert missing_framework(own, cluster((), ())) == ""


@pytest.mark.parametrize(
    ("requested", "is_installed"),
    [
        ("torch==2.13.0", True),
        ("torch>=2", False),
        ("torch==2.*", False),
        ("paddlepaddle==3.3.1", False),
        ("???", False),
    ],
)
def test_a_pinned_release_is_installed_by_the_run(torch_suite: Suite, requested: str, is_installed: bool) -> None:
    why = missing_framework(torch_suite, cluster(PADDLE), requested=requested)
    assert why == ("" if is_installed else "cluster lab has no torch")


def test_refusal_names_the_needed_and_the_available_frameworks(torch_suite: Suite) -> None:
    with pytest.raises(ConfigError) as caught:
        require_framework(torch_suite, cluster(PADDLE, PADDLE))
    assert str(caught.value) == (
        "--cluster: suite pytorch_multinode needs torch; found 'cluster lab has no torch'; "
        "expected a cluster with torch\n"
        "  hint: `frameworks` of a node in the cluster file lists what its environment has"
    )
    require_framework(torch_suite, cluster(TORCH, TORCH))
