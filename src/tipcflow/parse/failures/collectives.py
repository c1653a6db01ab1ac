"""Which collective operation a rank waited for, as NCCL's watchdogs in PyTorch and Paddle print it."""

import re
from typing import NamedTuple

# PyTorch: `Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, …)`.
_TORCH = re.compile(r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d+)")
# PyTorch: `[PG ID 0 PG GUID 0(default_pg) Rank 1]`, in older versions `[PG 1 Rank 10]`.
_TORCH_GROUP = re.compile(r"\[PG (?:ID )?(\S+) (?:PG GUID \S+ )?Rank \d+\]")
# Paddle: `Find timeout start but not finish task:group_key:…,group_ranks:…,global_rank:1,…,comm_count:7,op:…`.
_PADDLE = re.compile(
    r"Find timeout (?:init but not start|start but not finish) task: ?group_key:([^,]*),.{0,400}?comm_count:(\d+)"
)


class Collective(NamedTuple):
    """The first collective operation that timed out on a rank.

    Attributes:
        number: its number in its group; each rank counts its operations.
        group: the group of ranks as printed, '' if it is not printed or several groups are.
        several: whether operations of several groups timed out, so that the number belongs to an unknown one.
    """

    number: int
    group: str = ""
    several: bool = False


def timed_out_collective(text: str) -> Collective | None:
    """Return the first collective operation that a rank's log reports as timed out; None if it reports none."""
    numbers = [int(number) for number in _TORCH.findall(text)]
    groups = set(_TORCH_GROUP.findall(text))
    if not numbers:
        tasks = _PADDLE.findall(text)
        numbers, groups = [int(number) for _, number in tasks], {group for group, _ in tasks}
    if not numbers:
        return None
    return Collective(min(numbers), groups.pop() if len(groups) == 1 else "", several=len(groups) > 1)
