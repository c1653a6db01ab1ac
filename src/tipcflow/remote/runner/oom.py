"""Whether the kernel's out-of-memory killer ended one of ours."""

from __future__ import annotations

import os
import re


def kills() -> int:
    """How many processes the killer has ended since boot, on the whole machine; 0 when the kernel does not say."""
    try:
        with open("/proc/vmstat") as handle:
            found = re.search(r"^oom_kill (\d+)$", handle.read(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0


def victims() -> set[int] | None:
    """Pids that the kernel's log names as killed; None when we may not read it."""
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    found: set[int] = set()
    try:
        while True:
            try:
                record = os.read(log, 8192)
            except BrokenPipeError:
                continue  # overwritten while we read: the next one
            except OSError:
                return found  # the end
            match = re.search(rb"Killed process (\d+)", record)
            if match:
                found.add(int(match.group(1)))
    finally:
        os.close(log)


def killed(before: int, pids: set[int]) -> bool:
    """Whether it has struck since `before` was counted, and one of these pids where the kernel names them."""
    if kills() <= before:
        return False
    named = victims()
    return True if named is None else bool(named & pids)
