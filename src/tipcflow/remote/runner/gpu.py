"""Monitors GPU memory and utilization, through two nvidia-smi processes that print once a second.

After a failure it reports whose memory was on the job's GPUs: the model may not be the reason why they were full.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import AbstractSet, Any

from .processes import name_of, user_of

FRESH_S = 4.0  # older lines are out of date
CAPACITY_S = 5.0  # time limit of the query for the GPUs' memory
KEPT = 32  # processes in an exit record
# The kernel's first PID namespace: nvidia-smi's process IDs are those of the whole machine.
FIRST_NAMESPACE = "pid:[4026531836]"
QUERIES = ("--query-gpu=uuid,utilization.gpu,memory.used", "--query-compute-apps=gpu_uuid,pid,used_memory")


class Gpu:
    """Reads the output of nvidia-smi without blocking; returns no data without nvidia-smi."""

    def __init__(self) -> None:
        self.readers: list[subprocess.Popen[bytes]] = []
        self.gpus: dict[str, tuple[float, float, int]] = {}  # uuid -> (seen, % busy, bytes)
        self.apps: dict[tuple[str, int], tuple[float, int]] = {}  # (uuid, pid) -> (seen, bytes)
        self.own: dict[tuple[str, int], tuple[str, int]] = {}  # (uuid, pid) -> (rank, peak bytes)
        self.tails = [b"", b""]
        self.tool = ""

    def start(self, env: dict[str, str]) -> None:
        """Start the readers if this node has a GPU."""
        paths = [os.path.join(folder, "nvidia-smi") for folder in os.environ.get("PATH", "").split(":")]
        self.tool = next((path for path in paths if os.access(path, os.X_OK)), "")
        for query in QUERIES if self.tool else ():
            self.readers.append(
                subprocess.Popen(
                    [self.tool, query, "--format=csv,noheader,nounits", "-lms", "1000"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
                )
            )  # fmt: skip
            stdout: Any = self.readers[-1].stdout
            os.set_blocking(stdout.fileno(), False)

    @property
    def pids(self) -> set[int]:
        """Return the pids of the readers, which belong to the runner and not to the job."""
        return {reader.pid for reader in self.readers}

    def read(self) -> tuple[dict[int, int], list[dict[str, Any]]]:
        """Return pid -> bytes of GPU memory, and the GPUs with utilization in percent and bytes used."""
        now = time.monotonic()
        for index, reader in enumerate(self.readers):
            stdout: Any = reader.stdout
            try:
                data = self.tails[index] + os.read(stdout.fileno(), 1 << 16)
            except OSError:
                continue  # no new data
            *rows, self.tails[index] = data.split(b"\n")
            for row in rows:
                self.take(index, [cell.strip() for cell in row.decode("utf-8", "replace").split(",")], now)
        apps: dict[int, int] = {}
        for (_, pid), (seen, used) in self.apps.items():
            if now - seen < FRESH_S:
                apps[pid] = apps.get(pid, 0) + used
        gpus = [
            {"uuid": uuid, "busy_percent": busy, "used_bytes": used}
            for uuid, (seen, busy, used) in self.gpus.items()
            if now - seen < FRESH_S
        ]
        return apps, gpus

    def take(self, index: int, row: list[str], now: float) -> None:
        """Process one line of nvidia-smi; an unknown field is '[N/A]'."""
        if len(row) != 3 or not row[-1].isdigit():
            return
        used = int(row[-1]) * 1024 * 1024
        if index == 0:
            self.gpus[row[0]] = (now, float(row[1]) if row[1].isdigit() else 0.0, used)
        elif row[1].isdigit():
            self.apps[row[0], int(row[1])] = (now, used)  # a process on several GPUs has one line per GPU

    def learn(self, ranks: dict[int, str]) -> None:
        """Record the memory of the job's processes: pid -> rank, '' without one."""
        for (uuid, pid), (_, used) in self.apps.items():
            if pid in ranks:
                rank, peak = self.own.get((uuid, pid), ("", 0))
                self.own[uuid, pid] = (ranks[pid] or rank, max(peak, used))

    def holders(self, count: int, run: str, seen: AbstractSet[int]) -> list[dict[str, Any]]:
        """Return the field `gpu_processes` of the exit record: the job's processes, and others on its GPUs now.

        Args:
            count: the job uses the first GPUs in nvidia-smi's order; its processes may have used others, too.
            run: processes of this run are its own, also those of its other jobs.
            seen: pids of all processes that the job had.
        """
        if not self.readers or not sees_whole_machine():
            return []
        self.read()
        now, order = time.monotonic(), list(self.gpus)
        entries = [entry_of(order, uuid, pid, used, True, rank) for (uuid, pid), (rank, used) in self.own.items()]
        places = set(range(count)) | {entry["gpu"] for entry in entries}
        others = []
        for (uuid, pid), (at, used) in self.apps.items():
            is_here = pid and used and now - at < FRESH_S and uuid in order and order.index(uuid) in places
            if is_here and pid not in seen and os.path.exists(f"/proc/{pid}"):
                others.append(entry_of(order, uuid, pid, used, is_of_run(pid, run)))
        if any(not entry["is_own"] for entry in others):
            sizes = self.capacities()
            for entry in others:
                entry["total_bytes"] = sizes.get(order[entry["gpu"]], 0)
        return (sorted(others, key=lambda entry: -entry["size_bytes"]) + entries)[:KEPT]

    def capacities(self) -> dict[str, int]:
        """Return uuid -> bytes of all GPUs; empty if nvidia-smi fails."""
        command = [self.tool, "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                timeout=CAPACITY_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return {}
        rows = [row.split(",") for row in done.stdout.decode("utf-8", "replace").splitlines()]
        return {
            row[0].strip(): int(row[1]) * 1024 * 1024 for row in rows if len(row) == 2 and row[1].strip().isdigit()
        }

    def close(self) -> None:
        """End the readers."""
        for reader in self.readers:
            try:
                reader.kill()
            except OSError:
                pass


def sees_whole_machine() -> bool:
    """Whether /proc has the processes of the whole machine, under the process IDs that nvidia-smi prints."""
    try:
        return os.readlink("/proc/self/ns/pid") == FIRST_NAMESPACE
    except OSError:
        return False


def is_of_run(pid: int, run: str) -> bool:
    """Whether a process carries the marks of a job of this run, of any node of the machine."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as handle:
            return f"\0TIPCFLOW_JOB={run}/".encode() in b"\0" + handle.read()
    except OSError:
        return False


def entry_of(order: list[str], uuid: str, pid: int, used: int, is_own: bool, rank: str = "") -> dict[str, Any]:
    """Return one process of the exit record's `gpu_processes`."""
    return {
        "gpu": order.index(uuid) if uuid in order else -1,
        "pid": pid,
        "size_bytes": used,
        "is_own": is_own,
        "rank": int(rank) if rank.isdigit() else -1,
        "command": "" if is_own else f"{name_of(pid) or 'no name'}, user {user_of(pid) or 'unknown'}",
    }
