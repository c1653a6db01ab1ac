"""Who held the memory of a GPU: `tests/golden/gpu/README.md` has the hardware, or that a log is synthetic."""

from pathlib import Path

import pytest

from tipcflow.parse.failures.gpu_memory import GpuMemory, read_gpu_memory

LOGS = Path(__file__).parents[3] / "golden" / "gpu"
GIB = 1 << 30
USED = int(79.18 * GIB) - GIB
HEAD = (
    "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 3 has a total capacity of 16.00 GiB of which 0 bytes is "
    "free. "
)
TAIL = (
    "Of the allocated memory 14.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but "
    "unallocated."
)


def gpu_memory(name: str) -> GpuMemory:
    found = read_gpu_memory((LOGS / name).read_text())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("synthetic_neighbor_torch.log", {4242: 70 * GIB}),
        ("synthetic_neighbor_container.log", {4242: 70 * GIB}),
        ("synthetic_paddle.log", {}),
    ],
)
def test_message_has_numbers_and_processes(name: str, others: dict[int, int]) -> None:
    found = gpu_memory(name)
    assert (found.gpu, found.requested, found.free, found.others) == (0, 4 * GIB, GIB, others)
    assert found.used == pytest.approx(USED, abs=1 << 20)
    assert not found.is_limited


def test_recorded_message_of_a_process_alone_names_no_other() -> None:
    found = gpu_memory("out_of_memory.log")
    assert (found.requested, found.others) == (8 * GIB, {})
    assert found.used == pytest.approx(136.79 * GIB, abs=1 << 20)


@pytest.mark.parametrize(
    ("processes", "others"),
    [
        # The only process of the list is the one that failed: its memory is that of the allocator and a context.
        ("Process 7 has 15.90 GiB memory in use. ", {}),
        # The list has not the one that failed, whose memory is outside of the list.
        ("Process 7 has 1.20 GiB memory in use. ", {7: int(1.2 * GIB)}),
        # None may be the one that failed, and the rest is not enough for it.
        ("Process 7 has 9.00 GiB memory in use. ", {}),
        ("", {}),
    ],
)
def test_own_process_of_a_container_is_not_another(processes: str, others: dict[int, int]) -> None:
    found = read_gpu_memory(HEAD + processes + TAIL)
    assert found is not None
    assert (found.gpu, found.others) == (3, others)


def test_processes_are_unknown_without_the_memory_of_the_allocator() -> None:
    found = read_gpu_memory(HEAD + "Process 7 has 15.90 GiB memory in use.")
    assert found is not None
    assert found.others == {}


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "Process 7 has 15.90 GiB memory in use. 8.00 GiB allowed; " + TAIL,
        "Cannot allocate 4.000000GB memory on GPU 0, 7.000000GB memory has been allocated and available memory is "
        "only 1.000000GB.\n3. Set environment variable `FLAGS_gpu_memory_limit_mb` to a larger value. Currently "
        "`FLAGS_gpu_memory_limit_mb` is 8192, so the maximum GPU memory usage is limited to 8192 MB.",
    ],
)
def test_limit_of_the_framework_is_not_a_full_gpu(text: str) -> None:
    found = read_gpu_memory(text)
    assert found is not None
    assert found.is_limited


def test_message_without_numbers() -> None:
    assert read_gpu_memory("RuntimeError: CUDA error: out of memory") is None


def test_last_of_two_messages_counts() -> None:
    first = (
        "Cannot allocate 2.5GB memory on GPU 0, 3GB memory has been allocated and available memory is only 1GB."
    )
    found = read_gpu_memory(f"{first}\n{first.replace('2.5GB', '39.250000kB')}")
    assert found is not None
    assert found.requested == 40_192
