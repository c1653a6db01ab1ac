"""Monitors GPU memory and utilization, through two nvidia-smi processes that print once a second."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

FRESH_S = 4.0  # older lines are out of date
QUERIES = ("--query-gpu=uuid,utilization.gpu,memory.used", "--query-compute-apps=gpu_uuid,pid,used_memory")


class Gpu:
    """Reads the output of nvidia-smi without blocking; returns no data without nvidia-smi."""

    def __init__(self) -> None:
        self.readers: list[subprocess.Popen[bytes]] = []
        self.gpus: dict[str, tuple[float, float, int]] = {}  # uuid -> (seen, % busy, bytes)
        self.apps: dict[tuple[str, int], tuple[float, int]] = {}  # (uuid, pid) -> (seen, bytes)
        self.tails = [b"", b""]

    def start(self, env: dict[str, str]) -> None:
        """Start the readers if this node has a GPU."""
        paths = [os.path.join(folder, "nvidia-smi") for folder in os.environ.get("PATH", "").split(":")]
        tool = next((path for path in paths if os.access(path, os.X_OK)), "")
        for query in QUERIES if tool else ():
            self.readers.append(
                subprocess.Popen(
                    [tool, query, "--format=csv,noheader,nounits", "-lms", "1000"],
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

    def close(self) -> None:
        """End the readers."""
        for reader in self.readers:
            try:
                reader.kill()
            except OSError:
                pass
