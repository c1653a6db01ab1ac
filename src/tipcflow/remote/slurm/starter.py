"""Starter of an allocation: a process on each node, in a step of the batch script, that starts node runners.

Slurm ends all processes of a step with the step. A runner that a short step started would end with it, so every
runner is started here, where it lives as long as the allocation. This text is part of the batch script: standard
library only, Python >= 3.7, no import of other modules.

Protocol: a client connects to the abstract Unix socket, sends one JSON line, `{"words": [...], "env": {...}}`, and
receives what that command prints. Without words it is greeted only. Both sides check the other's user.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

# Variables that would make a framework believe that Slurm or MPI started its ranks; the job's ID stays.
LAUNCHER = re.compile(r"(SLURM|SLURMD|SBATCH|SRUN|PMI|PMI2|PMIX|OMPI|MPI)_.*")
KEPT = ("SLURM_JOB_ID", "SLURM_CONF")
REQUEST_BYTES = 1 << 20
PATIENCE_S = 10.0
# Slurm's default KillWait: from SIGTERM to SIGKILL, seconds. Afterwards processes that cannot be killed are left.
KILL_WAIT_S = 30.0


def name_of(job: str, node: str) -> str:
    """Return the name of the socket, without the zero byte that makes it abstract."""
    return f"tipcflow-starter/{os.getuid()}/{job}/{node}"


def is_own(peer: socket.socket) -> bool:
    """Return whether a process of this user is at the other end."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", credentials)[1] == os.getuid())


def receive(peer: socket.socket) -> dict[str, Any]:
    """Return a request; empty if none arrives in time."""
    peer.settimeout(PATIENCE_S)
    text = b""
    try:
        while not text.endswith(b"\n") and len(text) < REQUEST_BYTES:
            piece = peer.recv(65536)
            if not piece:
                return {}
            text += piece
        request = json.loads(text.decode())
        return request if isinstance(request, dict) else {}
    except (OSError, ValueError):
        return {}


def execute(peer: socket.socket, request: dict[str, Any]) -> None:
    """Become the requested command, in a session of its own, with its output to the client."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(peer.fileno(), 1)
    env = {name: value for name, value in os.environ.items() if name in KEPT or not LAUNCHER.fullmatch(name)}
    env.update(request.get("env") or {})
    words = [str(word) for word in request["words"]]
    os.execve(words[0], words, env)


def handle(peer: socket.socket) -> None:
    """Handle one request in a process of its own."""
    request = receive(peer)
    if request.get("words"):
        execute(peer, request)
    peer.sendall(b"{}\n")


def reap() -> bool:
    """Reap ended children; return whether there are others. Orphans of the jobs are adopted by this process."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False


def adopt_orphans() -> None:
    """Become the parent of all orphaned descendants, so that they stay in the tree of the step."""
    try:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except (OSError, AttributeError) as error:
        sys.stderr.write(f"orphans cannot be adopted: {error}\n")


def descendants() -> list[set[int]]:
    """Return the children of this process, their children, and so on."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/" + name + "/stat", "rb") as file:
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue  # it has ended
    levels = [{os.getpid()}]
    while levels[-1]:
        levels.append({pid for pid, parent in parents.items() if parent in levels[-1]})
    return levels[1:-1]


def send(number: int, pids: set[int]) -> None:
    """Send a signal."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_jobs(wait_s: float) -> None:
    """End all processes below this one, as Slurm does at the end of a step.

    Args:
        wait_s: from SIGTERM to SIGKILL.
    """
    # The runners and their guards: a runner ends its job and writes the exit record.
    for pids in descendants()[:2]:
        send(signal.SIGTERM, pids)
    start = time.monotonic()
    while reap() and time.monotonic() < start + 2 * wait_s:
        if time.monotonic() > start + wait_s:
            for pids in descendants():
                send(signal.SIGKILL, pids)
        time.sleep(0.1)


def serve(first_s: float, kill_wait_s: float = KILL_WAIT_S) -> int:
    """Serve until Slurm ends the step; return the exit code.

    Without slurmstepd, its parent, Slurm cannot end the processes of the step, and considers the node free after
    the allocation: the starter ends them, and itself.

    Args:
        first_s: if there is no request for this long after the start, it ends: no controller uses the allocation.
        kill_wait_s: as in `end_jobs`.
    """
    parent = os.getppid()
    adopt_orphans()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind("\0" + name_of(os.environ["SLURM_JOB_ID"], os.environ["SLURMD_NODENAME"]))
    server.listen(64)
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    until = time.monotonic() + first_s
    used = False
    # After SIGTERM the runners write their exit records: the step must not end, and end them, before that.
    while reap() or not ending:
        if os.getppid() != parent:
            server.close()
            end_jobs(kill_wait_s)
            return 1
        if not used and time.monotonic() > until:
            return 0
        if not select.select([server], [], [], 1.0)[0]:
            continue
        peer, _ = server.accept()
        if is_own(peer) and not ending:
            used = True
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                try:
                    handle(peer)
                finally:
                    os._exit(1)
        peer.close()
    return 0


def greet() -> int:
    """Send a request without a command to the starter of this node; return 0 if it responds."""
    name = name_of(os.environ["SLURM_JOB_ID"], os.environ["SLURMD_NODENAME"])
    until, why = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < until:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(PATIENCE_S)
        try:
            client.connect("\0" + name)
            if is_own(client):
                client.sendall(b"{}\n")
                if client.recv(16):
                    return 0
                why = "it closed the connection"
            else:
                why = "its socket belongs to another user"
        except OSError as error:
            why = str(error)
        finally:
            client.close()
        time.sleep(0.1)
    sys.stderr.write(f"the starter of the allocation does not respond: {why}\n")
    return 1
