"""Reader of the kernel log."""

from __future__ import annotations

import os
import re
from typing import Iterator

from .programs import find_program, run_program

# GPU errors (Xid), memory, hung tasks, disks, network cards.
TELLING = re.compile(
    r"\bXid\b|NVRM|nvidia|nvlink|out of memory|oom-kill|killed process|blocked for more than|hung.task|soft lockup"
    r"|I/O error|remounting filesystem|machine check|hardware error|segfault|mlx[45]|link (?:is )?down",
    re.I,
)


def records() -> Iterator[bytes] | None:
    """Return all records in the kernel's buffer, oldest first; None without permission."""
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    return read(log)


def read(log: int) -> Iterator[bytes]:
    """Yield the records of an open /dev/kmsg, then close it."""
    try:
        while True:
            try:
                yield os.read(log, 8192)
            except BrokenPipeError:
                continue  # overwritten while reading: continue with the next record
            except OSError:
                return  # the end
    finally:
        os.close(log)


def kernel_messages(most: int = 50) -> list[str]:
    """Return the last lines about hardware, drivers and memory, each with its age in seconds."""
    known = records()
    if known is None:
        code, text = run_program([find_program("dmesg") or "dmesg"], 3.0)
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
