"""Whether other processes than the run's held the memory of the GPU that a process found full."""

from collections.abc import Mapping
from dataclasses import dataclass

from tipcflow.domain import ExitRecord, GpuProcess
from tipcflow.domain.numbers.units import size
from tipcflow.domain.run.failure import FailureClass
from tipcflow.parse.failures.failure import LogFailure
from tipcflow.parse.failures.gpu_memory import GpuMemory, read_gpu_memory

# The runner reads the memory a few seconds before or after the message: the two may differ by this much.
_SLACK = 1 << 30


@dataclass(frozen=True)
class GpuNeighbors:
    """Other processes that held most of the used memory of a GPU, without which the allocation would have fit.

    Attributes:
        gpu: number of the GPU.
        processes: for users, each with its memory.
        used: memory that all processes held, bytes.
    """

    gpu: int
    processes: tuple[str, ...]
    used: int

    @property
    def text(self) -> str:
        """Return GPU, processes and memory in one line."""
        return f"GPU {self.gpu}, {size(self.used)} in use: {', '.join(self.processes)}"


def class_of_message(
    failure: LogFailure, record: ExitRecord | None, text: str = "", rank: int = -1
) -> FailureClass:
    """Return the class of a failure that a log reports: its own, or `gpu_taken` if others held the GPU.

    Args:
        text: the end of that log.
        rank: the global rank that wrote it; -1 for none.
    """
    taken = failure.failure_class is FailureClass.OOM_GPU and neighbors(record, text, rank) is not None
    return FailureClass.GPU_TAKEN if taken else failure.failure_class


def taken_by(kind: FailureClass | None, record: ExitRecord | None, text: str, rank: int) -> str:
    """Return GPU, processes and memory in parentheses, for a reason; '' for other classes than `gpu_taken`."""
    others = neighbors(record, text, rank) if kind is FailureClass.GPU_TAKEN else None
    return f" ({others.text})" if others else ""


def neighbors(record: ExitRecord | None, text: str, rank: int = -1) -> GpuNeighbors | None:
    """Return the other processes on the GPU that a process found full; None if they are not the cause.

    They are the cause if they held more than half of what was used, and if the failed allocation would have fit
    without them. Evidence is the framework's message and nvidia-smi's list in the exit record. A process of the
    message that nvidia-smi did not list may be another rank of the same training: it counts only if there is a
    single rank.

    Args:
        text: the end of the log with the message.
        rank: the global rank that wrote it; -1 for none.
    """
    if record is None:
        return None
    stated = read_gpu_memory(text)
    if stated is not None and stated.is_limited:
        return None
    listed = {process.pid: process for process in record.gpu_processes if not process.is_own}
    own = {process.pid for process in record.gpu_processes if process.is_own}
    named = {
        pid: count
        for pid, count in (stated.others if stated else {}).items()
        if pid not in own and (pid in listed or record.world_size <= 1)
    }
    gpu = _gpu(record, rank, [listed[pid] for pid in named if pid in listed])
    there = {pid: process for pid, process in listed.items() if process.gpu == gpu}
    held = {**{pid: process.size_bytes for pid, process in there.items()}, **named}
    used = _used(stated, there)
    if not _are_cause(stated, sum(held.values()), used):
        return None
    number = stated.gpu if stated is not None and gpu < 0 else gpu
    return GpuNeighbors(number, tuple(_shown(held, listed)), used)


def _gpu(record: ExitRecord, rank: int, named: list[GpuProcess]) -> int:
    """Return the GPU of a rank in nvidia-smi's order; -1 if unknown.

    A process that found no memory at all was never listed: its GPU is the one that no other rank used.
    """
    if named:
        return named[0].gpu
    own = [process for process in record.gpu_processes if process.is_own]
    candidates = {process.gpu for process in own if rank < 0 or process.rank in (rank, -1)}
    if not candidates:
        candidates = {process.gpu for process in record.gpu_processes} - {process.gpu for process in own}
    return candidates.pop() if len(candidates) == 1 else -1


def _used(stated: GpuMemory | None, there: Mapping[int, GpuProcess]) -> int:
    """Return what all processes held when the allocation failed: all memory, if the message has no numbers."""
    if stated is not None:
        return stated.used
    return max((process.total_bytes for process in there.values()), default=0)


def _are_cause(stated: GpuMemory | None, held: int, used: int) -> bool:
    if not held or not used or held > used + _SLACK or held * 2 <= used:
        return False
    return stated is None or stated.free < stated.requested <= stated.free + held


def _shown(held: Mapping[int, int], listed: Mapping[int, GpuProcess]) -> list[str]:
    """The largest first."""
    names = {pid: f" ({process.command})" if process.command else "" for pid, process in listed.items()}
    return [
        f"process {pid}{names.get(pid, '')} {size(count)}"
        for pid, count in sorted(held.items(), key=lambda item: -item[1])
    ]
