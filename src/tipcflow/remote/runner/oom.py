"""Detects whether the kernel's out-of-memory killer ended a process of the job."""

from __future__ import annotations

import os
import re

from .kmsg import records


def kills() -> int:
    """Return how many processes the OOM killer has ended since boot, on the whole machine; 0 if the kernel does
    not report it."""
    try:
        with open("/proc/vmstat") as handle:
            found = re.search(r"^oom_kill (\d+)$", handle.read(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


# The kernel log contains the machine's pids; inside a container, the job's pids are different.
MACHINE = "pid:[4026531836]"


def killed_pids() -> set[int] | None:
    """Return the pids that the kernel log names as killed; None without permission or in another pid namespace."""
    known = records() if os.readlink("/proc/self/ns/pid") == MACHINE else None
    if known is None:
        return None
    found = (re.search(rb"Killed process (\d+)", record) for record in known)
    return {int(match.group(1)) for match in found if match}


def is_named() -> bool:
    """Return whether the kernel names killed processes by comparable pids; inside a container, it does not."""
    return killed_pids() is not None


def killed(before: int, pids: set[int]) -> bool:
    """Return whether the OOM killer was active since `before` was counted, and killed one of these pids if the
    kernel names them."""
    if kills() <= before:
        return False
    named = killed_pids()
    return True if named is None else bool(named & pids)
