"""Failures of PyTorch on a real GPU: `tests/golden/gpu/README.md` has the hardware and the commands."""

from pathlib import Path

import pytest

from tipcflow.domain import FailureClass
from tipcflow.parse.failures.excerpt import error_excerpt
from tipcflow.parse.failures.failure import find_failure

LOGS = Path(__file__).parents[3] / "golden" / "gpu"
DUPLICATE = "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity"
)
WRITEV = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:339] writev [127.0.0.1]:4512: Bad"


@pytest.mark.parametrize(
    ("log", "failure_class", "line"),
    [
        ("nccl_two_ranks_one_gpu", FailureClass.NODE_UNREADY, DUPLICATE),
        ("out_of_memory", FailureClass.OOM_GPU, OUT_OF_MEMORY),
        (
            "device_assert",
            FailureClass.CODE_ERROR,
            "torch.AcceleratorError: CUDA error: device-side assert triggered",
        ),
        ("gloo_cuda_tensor", FailureClass.CODE_ERROR, WRITEV),
    ],
)
def test_recorded_log_has_a_class_and_a_line(log: str, failure_class: FailureClass, line: str) -> None:
    text = (LOGS / f"{log}.log").read_text()
    found = find_failure(text)
    assert found is not None
    assert (found.failure_class, found.is_collateral) == (failure_class, False)
    assert found.log_line.startswith(line)
    excerpt = error_excerpt(text)
    assert "^^^" not in excerpt
    assert "[rank0]:" not in excerpt


def test_excerpt_of_a_log_with_ranks_ends_with_the_exception() -> None:
    lines = error_excerpt((LOGS / "gloo_cuda_tensor.log").read_text()).splitlines()
    assert lines[-1].startswith(WRITEV)
    assert lines[-2] == "    return group.send([tensor], group_dst, tag)"


def test_result_of_nccl_is_followed_by_its_last_error() -> None:
    text = (LOGS / "nccl_two_ranks_one_gpu.log").read_text()
    other = text.replace(DUPLICATE, "Error : mlx5_0:1 is down").replace("InvalidUsage: This", "SystemError: That")
    found = find_failure(other)
    assert found is not None
    assert (found.rule, found.failure_class) == ("nccl", FailureClass.COMMUNICATION)
    assert found.log_line.startswith("ncclSystemError: That usually")
    assert found.log_line.endswith(" Last error: Error : mlx5_0:1 is down")
