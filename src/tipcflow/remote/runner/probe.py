"""Node probes: speed of CPU, memory and disk independent of any model, measured in less than a second."""

from __future__ import annotations

import hashlib
import os
import threading
import time

from .files import Json

CPU_BYTES = 1 << 20  # hashed by each thread in each round; large pieces are hashed without the interpreter's lock
CPU_ROUNDS, MEMORY_ROUNDS = 12, 6
MEMORY_BYTES = 16 << 20  # larger than most caches
DISK_BYTES = 1 << 20
LIMIT_S = 0.25  # time limit of one probe; the remaining work is extrapolated
MOST_THREADS = 64


def probes(folder: str) -> Json:
    """Return the seconds for a fixed amount of work: `cpu` on all CPUs of this process at once, `memory`,
    `disk`.

    A probe that fails (no disk space, no memory) is omitted.

    Args:
        folder: where the disk is probed; no file remains there.
    """
    report: Json = {}
    for name, work in (("cpu", cpu), ("memory", memory), ("disk", lambda: disk(folder))):
        try:
            report[name] = round(work(), 6)
        except (OSError, MemoryError, RuntimeError):
            continue
    return report


def cpu() -> float:
    """Hash on every CPU that this process may use; the slowest thread counts, like the slowest rank."""
    count = min(MOST_THREADS, len(os.sched_getaffinity(0)))
    piece, took = b"\0" * CPU_BYTES, [0.0] * count

    def work(number: int) -> None:
        begin, done = time.monotonic(), 0
        while done < CPU_ROUNDS and (not done or time.monotonic() - begin < LIMIT_S):
            hashlib.sha256(piece).digest()
            done += 1
        took[number] = (time.monotonic() - begin) * CPU_ROUNDS / done

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(took)


def memory() -> float:
    """Copy a block that does not fit into any cache."""
    source, target = bytearray(MEMORY_BYTES), bytearray(MEMORY_BYTES)
    begin, done = time.monotonic(), 0
    while done < MEMORY_ROUNDS and (not done or time.monotonic() - begin < LIMIT_S):
        target[:] = source
        done += 1
    return (time.monotonic() - begin) * MEMORY_ROUNDS / done


def disk(folder: str) -> float:
    """Write a file to the disk and read it back from the disk."""
    path, piece = os.path.join(folder, f"probe.{os.getpid()}"), os.urandom(DISK_BYTES)
    begin = time.monotonic()
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, piece)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(handle, 0, os.SEEK_SET)
        while os.read(handle, DISK_BYTES):
            pass
        return time.monotonic() - begin
    finally:
        os.close(handle)
        os.unlink(path)
