"""Observes the ranks of a command from outside: lifetime, CPU time, framework, and TCP connections."""

from __future__ import annotations

import os
import re
import time

from .files import Json
from .processes import HZ, Proc
from .ranks import rank_of
from .sockets import table

POLL_S = 0.1  # interval for ranks without a connection: a short training must not fall between two polls
CONNECTED_S = 5.0  # the same for all others
SHARE = 0.02  # of one CPU that polling may use
LIBRARIES = ((b"/libpaddle", "paddle"), (b"/core_avx", "paddle"), (b"/libtorch", "torch"))
SSH = 22


class Observed:
    """One rank.

    Attributes:
        started: seconds since the node's boot; `seconds`: from there to its last sample.
        framework_s: seconds from the first to the last sample of a process that had loaded a framework.
        peers, others, local: largest number of established connections at one poll: to the gang's other nodes, to
            other machines, within the node.
        hidden: its open files may not be inspected.
    """

    def __init__(self, started: float) -> None:
        self.started, self.seconds, self.cpu_s = started, 0.0, 0.0
        self.pids: list[int] = []
        self.framework, self.loaded, self.framework_s = "", 0.0, 0.0
        self.peers = self.others = self.local = 0
        self.hidden = False

    def summary(self, rank: str) -> Json:
        """Return its fields of the exit record."""
        names = ("framework", "peers", "others", "local", "hidden")
        times = {name: round(getattr(self, name), 2) for name in ("seconds", "cpu_s", "framework_s")}
        return dict({name: getattr(self, name) for name in names}, rank=int(rank), **times)


class Observer:
    """All ranks of the current command.

    Args:
        spec: the job's; `peers` are the addresses of the gang's other nodes.
    """

    def __init__(self, spec: Json) -> None:
        self.peers = frozenset(spec.get("peers") or ())
        self.begin()

    def begin(self) -> None:
        """Reset for a new command."""
        self.ranks: dict[str, Observed] = {}
        self.servers = False
        self.next_poll = 0.0
        self.before, self.bytes = closing(self.peers), traffic()

    def learn(self, procs: list[Proc]) -> None:
        """Update the ranks from the job's living processes."""
        found: dict[str, list[Proc]] = {}
        now = uptime()
        for proc in procs:
            rank = rank_of(proc)
            self.servers |= proc.var("TRAINING_ROLE") == "PSERVER" or bool(
                proc.var("PADDLE_PSERVERS_IP_PORT_LIST")
            )
            if rank.isdigit() and len(rank) < 10:
                found.setdefault(rank, []).append(proc)
        for rank, of_rank in found.items():
            one = self.ranks.setdefault(rank, Observed(now))
            one.pids = [proc.pid for proc in of_rank]
            one.started = min([one.started, *[proc.start / HZ for proc in of_rank if proc.start]])
            one.seconds = max(one.seconds, now - one.started)
            one.cpu_s = max(one.cpu_s, sum(proc.cpu for proc in of_rank))
            if not one.framework:
                one.framework = next((name for name in map(framework_of, one.pids) if name), "")
                one.loaded = now
            one.framework_s = now - one.loaded if one.framework else 0.0

    def poll(self) -> None:
        """Count the connections of the ranks, more often while one of them has none."""
        begin, cpu = time.monotonic(), time.process_time()
        if not self.ranks or begin < self.next_poll:
            return
        networks: dict[str, dict[str, Json]] = {}
        now, lonely = uptime(), False
        for one in self.ranks.values():
            one.pids = [pid for pid in one.pids if os.path.exists(f"/proc/{pid}")]
            if not one.pids:
                continue
            one.seconds = max(one.seconds, now - one.started)
            if one.framework:
                one.framework_s = now - one.loaded
            self.count(one, networks)
            lonely |= not one.peers + one.others
        used = time.process_time() - cpu
        self.next_poll = begin + max(POLL_S if lonely else CONNECTED_S, used / SHARE)

    def count(self, one: Observed, networks: dict[str, dict[str, Json]]) -> None:
        """Count the established connections of one rank."""
        seen: dict[str, set[str]] = {"peer": set(), "other": set(), "local": set()}
        for pid in one.pids:
            try:
                network = os.readlink(f"/proc/{pid}/ns/net")
                inodes = socket_inodes(pid)
            except PermissionError:
                one.hidden = True
                continue
            except OSError:
                continue
            if network not in networks:
                networks[network] = table(pid)
            for inode in inodes & set(networks[network]):
                known = networks[network][inode]
                if known["state"] == "ESTABLISHED":
                    seen[side(known["local"], known["peer"], self.peers)].add(inode)
        one.peers, one.others = max(one.peers, len(seen["peer"])), max(one.others, len(seen["other"]))
        one.local = max(one.local, len(seen["local"]))

    def summary(self) -> Json:
        """Return the field `observed` of the exit record."""
        after = traffic()
        return {
            "ranks": [
                one.summary(rank) for rank, one in sorted(self.ranks.items(), key=lambda item: int(item[0]))
            ],
            "servers": self.servers,
            "closed": len(closing(self.peers) - self.before),
            "received_bytes": max(0, after[0] - self.bytes[0]),
            "sent_bytes": max(0, after[1] - self.bytes[1]),
        }


def socket_inodes(pid: int) -> set[str]:
    """Return the inodes of a process's open sockets.

    Raises:
        OSError: the process has ended or may not be inspected.
    """
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            match = re.match(r"socket:\[(\d+)\]$", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except FileNotFoundError:
            continue
        if match:
            found.add(match.group(1))
    return found


def host(address: str) -> str:
    """Return the host of `10.0.0.1:80` or `[::1]:80`; an IPv4 address that is mapped into IPv6 as IPv4."""
    name = address.rpartition(":")[0].strip("[]")
    return name[7:] if name.startswith("::ffff:") else name


def side(local: str, peer: str, peers: frozenset[str]) -> str:
    """Return where a connection leads: `peer`, `other` or `local`."""
    there = host(peer)
    if there in peers:
        return "peer"
    return "local" if there.startswith("127.") or there in ("::1", host(local)) else "other"


def closing(peers: frozenset[str]) -> set[tuple[str, str]]:
    """Return the connections with these addresses that are being closed: they belong to no process any more, and
    the kernel keeps them for a minute."""
    found = set()
    for known in table(os.getpid(), closed=True).values() if peers else ():
        ports = {int(known[name].rpartition(":")[2]) for name in ("local", "peer")}
        if host(known["peer"]) in peers and SSH not in ports:
            found.add((known["local"], known["peer"]))
    return found


def framework_of(pid: int) -> str:
    """Return the framework whose library a process has loaded, '' for none."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as handle:
            maps = handle.read()
    except OSError:
        return ""
    return next((name for library, name in LIBRARIES if library in maps), "")


def uptime() -> float:
    """Return the seconds since the node's boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def traffic() -> tuple[int, int]:
    """Return the bytes that the node's network interfaces have received and sent, without the loopback."""
    received = sent = 0
    try:
        with open("/proc/self/net/dev") as handle:
            rows = handle.read().splitlines()[2:]
    except OSError:
        return 0, 0
    for row in rows:
        name, _, cells = row.partition(":")
        if name.strip() != "lo":
            numbers = cells.split()
            received, sent = received + int(numbers[0]), sent + int(numbers[8])
    return received, sent
