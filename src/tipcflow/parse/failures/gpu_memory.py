"""Message of a framework about a GPU without enough memory -> who held how much of it.

PyTorch lists the processes of the GPU as NVML does. If it runs in another PID namespace (a container), its own
process is one of the list and not named as such. Paddle states only what all processes hold together.
"""

import re
from collections.abc import Mapping

from tipcflow.domain import Frozen
from tipcflow.parse.text import strip_ansi

_SIZE = r"([\d.]+) ?(bytes|[kKMGT]?i?B)"
# PyTorch 2.0 and 2.1 misspell the capacity.
_TORCH = re.compile(
    rf"Tried to allocate {_SIZE}\. GPU (\d+) has a total capaci?ty of {_SIZE} of which {_SIZE} is free\."
)
_PROCESS = re.compile(rf"\bProcess (\d+) has {_SIZE} memory in use")
_THIS = re.compile(rf"\bthis process has {_SIZE} memory in use")
_ALLOCATOR = re.compile(
    rf"Of the allocated memory {_SIZE} is allocated by PyTorch.* and {_SIZE} is reserved by PyTorch but "
    r"unallocated"
)
_PADDLE = re.compile(
    rf"Cannot allocate {_SIZE} memory on GPU (\d+), {_SIZE} memory has been allocated and available memory is "
    rf"only {_SIZE}"
)
_LIMIT = re.compile(r"FLAGS_gpu_memory_limit_mb` is \d|in use\..* allowed; Of the allocated memory")
# A process that allocates has a CUDA context, which is not part of the allocator's memory: of 250 MiB or more.
_CONTEXT = 128 << 20


class GpuMemory(Frozen):
    """Memory of a GPU when an allocation failed, bytes.

    Attributes:
        gpu: number of the GPU as the process counts.
        requested, free: what was not available, and what was.
        used: by all processes.
        others: pid -> memory of the processes that the message proves to be others than the one that failed.
        is_limited: a limit of the framework refused, not the GPU.
    """

    gpu: int
    requested: int
    free: int
    used: int
    others: Mapping[int, int] = {}
    is_limited: bool = False


def read_gpu_memory(text: str) -> GpuMemory | None:
    """Return the numbers of the last message about a failed allocation in a log; None without numbers."""
    text = strip_ansi(text)
    torch = [line for line in text.splitlines() if _TORCH.search(line)]
    if torch:
        return _of_torch(torch[-1])
    messages = list(_PADDLE.finditer(text))
    if not messages:
        return None
    requested, unit, gpu, used, used_unit, free, free_unit = messages[-1].groups()
    return GpuMemory(
        gpu=int(gpu),
        requested=_bytes(requested, unit),
        free=_bytes(free, free_unit),
        used=_bytes(used, used_unit),
        is_limited=_LIMIT.search(text, messages[-1].end()) is not None,
    )


def _of_torch(line: str) -> GpuMemory | None:
    message = _TORCH.search(line)
    if message is None:
        return None
    requested, unit, gpu, total, total_unit, free, free_unit = message.groups()
    free_bytes = _bytes(free, free_unit)
    used = max(0, _bytes(total, total_unit) - free_bytes)
    listed = {int(pid): _bytes(count, of) for pid, count, of in _PROCESS.findall(line)}
    return GpuMemory(
        gpu=int(gpu),
        requested=_bytes(requested, unit),
        free=free_bytes,
        used=used,
        others=listed if _THIS.search(line) else _without_own(line, listed, used),
        is_limited=_LIMIT.search(line) is not None,
    )


def _without_own(line: str, listed: Mapping[int, int], used: int) -> dict[int, int]:
    """Return the listed processes without the one that failed, which the message does not name.

    Unless the memory outside of the list is enough for that process, it is the listed one whose memory is nearest
    to, and not less than, that of its allocator.
    """
    allocator = _ALLOCATOR.search(line)
    if allocator is None:
        return {}
    own = _bytes(allocator[1], allocator[2]) + _bytes(allocator[3], allocator[4])
    if used - sum(listed.values()) >= own + _CONTEXT:
        return dict(listed)
    candidates = [pid for pid, count in listed.items() if count + _CONTEXT >= own]
    if not candidates:
        return {}
    itself = min(candidates, key=lambda pid: listed[pid])
    return {pid: count for pid, count in listed.items() if pid != itself}


def _bytes(number: str, unit: str) -> int:
    """Both frameworks count in powers of 1024, whatever the unit's name."""
    power = "bkmgt".find(unit[0].lower())
    try:
        return int(float(number) * 1024**power)
    except ValueError:
        return 0
