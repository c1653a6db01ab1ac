"""Faults of whole nodes."""

import time
from pathlib import Path

from tests.support.faults.case import Case
from tests.support.faults.gate import FOR_EVER


def reboot(case: Case) -> None:
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    case.now()
    case.nodes.reboot("b")
    case.end(running)


def disk_full(case: Case) -> None:
    """A workspace of 300 MB is full in the middle of a training, which continues to print."""
    mine = f'print("x" * {4 << 20}, flush=True)'
    workspace = case.nodes.cluster.node("b").workspace
    case.nodes.exec("b", ["mkdir", "-p", workspace])
    case.nodes.exec("b", ["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", workspace])
    case.stack.callback(case.nodes.exec, "b", ["umount", "-l", workspace])
    # The ranks of node a wait: only a job that is stopped shows here when the fault was noticed.
    gate = case.gate(rank=3, mine=mine, others=FOR_EVER)
    running = case.start()
    gate.wait(running)
    # The node may see the full disk before `dd` has ended.
    case.now()
    case.nodes.exec("b", ["dd", "if=/dev/zero", f"of={workspace}/filler", "bs=1M"])
    gate.open()
    case.end(running)


def wrong_host_key(case: Case) -> None:
    """The node was set up again, or another machine pretends to be it."""
    folder = Path(case.nodes.folder, "b")
    keys = {path: path.read_bytes() for path in (folder / "host_key", folder / "host_key.pub")}
    case.nodes.change_host_key("b")
    try:
        case.now()
        running = case.start()
        case.end(running)
        case.noticed_at = time.time()
    finally:
        for path, data in keys.items():
            path.write_bytes(data)
        case.nodes.kill_sshd("b")
        case.nodes.start_sshd("b")
