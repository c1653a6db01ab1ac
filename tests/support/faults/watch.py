"""Events on nodes while a fault is made: which processes run there, and when a runner was stopped."""

import contextlib
import json
import threading
import time
from pathlib import Path

from devcluster.local_nodes.nodes import LocalNodes

POLL_S = 0.2


class Watch(threading.Thread):
    """Polls nodes a few times a second until `end`.

    Attributes:
        empty: when all watched nodes were found empty, seconds since the epoch.
        unseen: nodes that are not inspected, because they are unreachable.
    """

    def __init__(self, nodes: LocalNodes) -> None:
        super().__init__(name="watch", daemon=True)
        self._nodes = nodes
        self._workspaces = {node.name: Path(node.workspace) for node in nodes.cluster.nodes}
        self._over = threading.Event()
        self._old = self._marks()
        self.empty: list[float] = []
        self.unseen: set[str] = set()
        self.start()

    def run(self) -> None:
        while not self._over.wait(POLL_S):
            with contextlib.suppress(Exception):  # a node that is just being rebooted
                if not any(self._nodes.processes(name) for name in self._workspaces.keys() - self.unseen):
                    self.empty.append(time.time())

    def end(self) -> None:
        self._over.set()
        self.join()

    def noticed(self, since: float) -> float | None:
        """When a job was first stopped or had failed, by its folder; None if neither happened."""
        times = [at for path, at in self._marks().items() if path not in self._old and at >= since]
        return min(times, default=None)

    def _marks(self) -> dict[Path, float]:
        found = {}
        for workspace in self._workspaces.values():
            for path in workspace.glob("jobs/*/*/*/*"):
                with contextlib.suppress(OSError, ValueError):
                    if path.name == "stop" or (path.name == "exit.json" and _bad(path)):
                        found[path] = path.stat().st_mtime
        return found


def _bad(record: Path) -> bool:
    report = json.loads(record.read_text())
    return (report.get("reason"), report.get("exit_code")) != ("exited", 0)
