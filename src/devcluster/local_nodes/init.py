"""First process of a local node. One file that only uses the standard library and starts in milliseconds.

Usage: python -I -S init.py CONFIG.json

init sets up the node's private environment (host name, mounts), starts sshd (in namespaces, after the node has
an address), and reaps orphans. Its standard input is a lifeline: when the process that created the node ends,
for any reason, the node ends with all its processes. In a PID namespace the kernel ends them; without one, init
is the subreaper of all processes that sshd starts.

Signals: USR1 starts sshd unless it is running; TERM ends the node.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_END_S = 5.0


def _mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def isolate(config: dict[str, Any]) -> None:
    """Set host name and private mounts of a node with its own namespaces."""
    socket.sethostname(config["hostname"])
    for source, target in config["binds"]:
        _mount("--bind", source, target)
    # A real node sees neither its peers' files nor their shared memory.
    for folder in config["hide"]:
        _mount("-t", "tmpfs", "-o", "size=4k,mode=0555", "tmpfs", folder)
    _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm")  # noqa: S108
    _mount("-t", "sysfs", "-o", "ro", "sysfs", "/sys")


def descendants(marker: bytes) -> list[int]:
    """Return the pids of this process's descendants and of all processes with `marker` in their environment."""
    parents: dict[int, int] = {}
    marked = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(entry.path, "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
                if marker in Path(entry.path, "environ").read_bytes():
                    marked.append(int(entry.name))
    pids, todo = marked, [os.getpid()]
    while todo:
        parent = todo.pop()
        children = [pid for pid, above in parents.items() if above == parent]
        pids += children
        todo += children
    return pids


class Init:
    """The loop of init: reap, restart sshd on request, end with the lifeline."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.sshd = 0
        # In namespaces, sshd's listen address is available only after the link is up; USR1 signals this.
        self.wanted = not config["isolated"]
        self.ending = False

    def start_sshd(self) -> None:
        """Start the listening sshd and write its pid to a file, by which it can be killed."""
        self.wanted = False
        if self.sshd:
            return
        with Path(self.config["log"]).open("ab") as log:
            process = subprocess.Popen(
                self.config["sshd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        # Reaped below like any other child, so subprocess must not wait for it too.
        process.returncode = 0
        self.sshd = process.pid
        Path(self.config["pid_file"]).write_text(str(process.pid))

    def reap(self) -> bool:
        """Reap ended children. Returns: whether any child is left."""
        try:
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if pid == self.sshd:
                    self.sshd = 0
        except ChildProcessError:
            return False
        return True

    def run(self) -> None:
        """Run until the lifeline closes or SIGTERM is received."""
        wake, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "wanted", True))
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "ending", True))
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.write(1, b"ready\n")
        while not self.ending:
            self.reap()
            if self.wanted:
                self.start_sshd()
            readable, _, _ = select.select([0, wake], [], [])
            if wake in readable:
                os.read(wake, 4096)
            if 0 in readable and not os.read(0, 1):
                break

    def end(self) -> None:
        """Kill all descendants; new orphans become children, so repeat until none is left."""
        deadline = time.monotonic() + _END_S
        marker = self.config["marker"].encode()
        while time.monotonic() < deadline:
            self.reap()
            left = descendants(marker)
            if not left:
                break
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)


def main() -> None:
    """Read the config and run as the node's init."""
    config = json.loads(Path(sys.argv[1]).read_text())
    if config["isolated"]:
        isolate(config)
    else:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    init = Init(config)
    init.run()
    init.end()


if __name__ == "__main__":
    main()
