"""Whether the kernel's out-of-memory killer ended a process of the job."""

from __future__ import annotations

import os
import re

from .kmsg import records


def kills() -> int:
    """How many processes the killer has ended since boot, on the whole machine; 0 when the kernel does not say."""
    try:
        with open("/proc/vmstat") as handle:
            found = re.search(r"^oom_kill (\d+)$", handle.read(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


# The kernel's log has the machine's own pids; in a container we know our processes by others.
MACHINE = "pid:[4026531836]"


def victims() -> set[int] | None:
    """Pids that the kernel's log names as killed; None when we may not read it or know them by other numbers."""
    known = records() if os.readlink("/proc/self/ns/pid") == MACHINE else None
    if known is None:
        return None
    found = (re.search(rb"Killed process (\d+)", record) for record in known)
    return {int(match.group(1)) for match in found if match}


def killed(before: int, pids: set[int]) -> bool:
    """Whether it has struck since `before` was counted, and one of these pids where the kernel names them."""
    if kills() <= before:
        return False
    named = victims()
    return True if named is None else bool(named & pids)
