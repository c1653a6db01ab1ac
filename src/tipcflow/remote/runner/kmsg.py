"""The kernel's log."""

from __future__ import annotations

import os
import re
from typing import Iterator

from .said import said, tool

# GPU errors (Xid), memory, tasks that hang, disks, network cards.
TELLING = re.compile(
    r"\bXid\b|NVRM|nvidia|nvlink|out of memory|oom-kill|killed process|blocked for more than|hung.task|soft lockup"
    r"|I/O error|remounting filesystem|machine check|hardware error|segfault|mlx[45]|link (?:is )?down",
    re.I,
)


def records() -> Iterator[bytes] | None:
    """All records that the kernel still has, oldest first; None when we may not read them."""
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    return read(log)


def read(log: int) -> Iterator[bytes]:
    """The records of an open /dev/kmsg, which is closed at their end."""
    try:
        while True:
            try:
                yield os.read(log, 8192)
            except BrokenPipeError:
                continue  # overwritten while we read: the next one
            except OSError:
                return  # the end
    finally:
        os.close(log)


def telling(most: int = 50) -> list[str]:
    """The last lines about hardware, drivers and memory, each with its age in seconds."""
    known = records()
    if known is None:
        code, text = said([tool("dmesg") or "dmesg"], 3.0)
        return [line for line in text.splitlines() if code == 0 and TELLING.search(line)][-most:]
    with open("/proc/uptime") as handle:
        up = float(handle.read().split()[0])
    found = []
    for record in known:
        head, _, text = record.decode("utf-8", "replace").partition(";")
        text = text.split("\n", 1)[0]
        if TELLING.search(text):
            found.append(f"{max(0.0, up - int(head.split(',')[2]) / 1e6):.0f} s ago: {text[:300]}")
    return found[-most:]
