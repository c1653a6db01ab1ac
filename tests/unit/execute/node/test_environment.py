from typing import Any

import pytest

from tipcflow.domain import NodeFacts
from tipcflow.domain.numbers.environment import EnvironmentClass, differences, unlike_before
from tipcflow.execute.node.environment import environment_class

EPYC = "AMD EPYC 7B13 64-Core Processor"
CPU = NodeFacts(node="a", cpu_model=EPYC, cpu_count=2, framework="paddlepaddle", framework_version="3.3.1")
GPU = CPU.model_copy(
    update={
        "gpus": ({"name": "Tesla V100-SXM2-16GB"},) * 8,
        "driver": "535.104.05",
        "cuda": "12.6.1",
        "framework": "paddlepaddle-gpu",
    }
)
# These are stored in databases: a history ends where one of them changes.
CPU_KEY = "cpu/amd-epyc-7b13-64-core-2/2-nodes/4-ranks"
GPU_KEY = "gpu/8x-tesla-v100-sxm2-16gb/1-nodes/8-ranks/driver-535/cuda-12.6"


def test_the_key_of_known_nodes_stays() -> None:
    assert environment_class([CPU, CPU], device="cpu", world_size=4) == CPU_KEY
    assert environment_class([GPU], device="gpu", world_size=8) == GPU_KEY
    assert environment_class([], device="cpu", world_size=4) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "6.2", "hostname": "x", "os": "Debian 13"},
        {"framework_version": "3.4.0", "framework_commit": "abc"},
        {"framework": "", "framework_version": ""},
        {"driver": "535.200.01", "cuda": "12.6.3", "cudnn": "9.9", "nccl": "2.30"},
        {"python": "3.12.1", "packages": {"numpy": "2.4"}, "memory_bytes": 1, "ips": ("10.0.0.9",)},
    ],
)
def test_minor_changes_keep_the_environment_class(changes: dict[str, Any]) -> None:
    assert environment_class([GPU.model_copy(update=changes)], device="gpu", world_size=8) == GPU_KEY


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({"cuda": "12.9"}, "CUDA 12.9 instead of 12.6"),
        ({"driver": "570.1"}, "GPU driver 570 instead of 535"),
        ({"driver": ""}, "GPU driver unknown instead of 535"),
        ({"gpus": ({"name": "A100"},)}, "hardware 1x-a100 instead of 8x-tesla-v100-sxm2-16gb"),
    ],
)
def test_differences_of_environment_classes_are_reported(changes: dict[str, Any], result: str) -> None:
    other = environment_class([GPU.model_copy(update=changes)], device="gpu", world_size=8)
    assert differences(GPU_KEY, other) == [result]


def test_the_image_counts_without_its_tag() -> None:
    def key(image: str) -> str:
        return environment_class([CPU], device="cpu", world_size=1, images=[image])

    assert key("hub.example:5000/Paddle/paddle:3.3.1-cpu").endswith(
        "/1-ranks/image-hub.example-5000-paddle-paddle"
    )
    same = {key("ci/paddle:3.3"), key("ci/paddle:3.4"), key("ci/paddle@sha256:0f0f"), key("ci/paddle")}
    assert len(same) == 1
    assert key("ci/other:3.3") not in same


def test_nodes_that_differ_are_joined() -> None:
    other = CPU.model_copy(update={"cpu_model": "Intel(R) Xeon(R) CPU @ 2.20GHz"})
    key = environment_class([CPU, other], device="cpu", world_size=4)
    assert key == "cpu/amd-epyc-7b13-64-core-2+intel-xeon-2/2-nodes/4-ranks"
    assert differences(CPU_KEY, key) == [
        "hardware amd-epyc-7b13-64-core-2+intel-xeon-2 instead of amd-epyc-7b13-64-core-2"
    ]


def test_a_key_names_its_parts() -> None:
    for key in (CPU_KEY, GPU_KEY, ""):
        assert EnvironmentClass.of(key).key == key
    parts = EnvironmentClass.of(GPU_KEY)
    assert (parts.device, parts.nodes, parts.ranks, parts.driver) == ("gpu", "1", "8", "535")
    assert differences(CPU_KEY, "") == [
        "device unknown instead of cpu",
        "hardware unknown instead of amd-epyc-7b13-64-core-2",
        "number of nodes unknown instead of 2",
        "number of processes unknown instead of 4",
    ]
    assert EnvironmentClass.of("something/of/old").key == "something/of"
    assert EnvironmentClass.of("cpu/x-2/1-nodes/2-ranks/paddle-3.3").key == "cpu/x-2/1-nodes/2-ranks"


def test_a_run_states_its_differences_from_the_previous_run() -> None:
    new = GPU_KEY.replace("535", "570")
    assert unlike_before(new, GPU_KEY, "r1") == (
        "GPU driver 570 instead of 535: not compared with r1, the run before"
    )
    for now, before in ((GPU_KEY, GPU_KEY), ("", GPU_KEY), (GPU_KEY, "")):
        assert unlike_before(now, before, "r1") == ""
